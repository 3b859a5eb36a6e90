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

func (c *choices) forget(id verbs.ProcessID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.taken, id)
}
