package tracer

import (
	"sync"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// choices remembers which processes are traced, for what comes when a process has
// ended and cannot be asked about any more. Its zero value is ready for use, from
// any goroutine.
type choices struct {
	mu    sync.Mutex
	taken map[verbs.ProcessID]bool
}

func (c *choices) keep(id verbs.ProcessID, taken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken == nil {
		c.taken = map[verbs.ProcessID]bool{}
	}
	c.taken[id] = taken
}

func (c *choices) of(id verbs.ProcessID) (taken, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken, known = c.taken[id]
	return taken, known
}

// shows reports whether what is known of a process may be told: where not all are
// traced, only once it was decided that this one is. The kernel side follows it from
// its first queue on until it is told not to.
func (t *Tracer) shows(id verbs.ProcessID) bool {
	if !t.cfg.selects {
		return true
	}
	taken, known := t.choices.of(id)
	return taken && known
}

// showsOn is shows of what is on a device, which must not be one that is left out.
// The kernel side follows the first queues of a device until it is told not to.
func (t *Tracer) showsOn(id verbs.ProcessID, device string) bool {
	return t.shows(id) && t.takesDevice(device)
}

// takesDevice is true of a device whose name is not known.
func (t *Tracer) takesDevice(name string) bool { return name == "" || t.cfg.TakesDevice(name) }

// tells is shows for what is told at once or never: it counts what is of a process
// that nothing was decided about.
func (t *Tracer) tells(id verbs.ProcessID) bool {
	if t.shows(id) {
		return true
	}
	if _, known := t.choices.of(id); !known {
		t.undecided.Add(1)
	}
	return false
}

func (c *choices) forget(id verbs.ProcessID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.taken, id)
}
