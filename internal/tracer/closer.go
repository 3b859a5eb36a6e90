package tracer

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf/link"
)

// closer closes links in the background. The kernel lets go of a probe once the
// programs that run have ended: after some tens of milliseconds, and seconds on a
// busy machine, for which nobody waits who holds the tracer's lock. Until then
// nothing is attached in the same places: one call would pass two probes. So a
// closer never holds more links than a file has places. Its zero value is ready
// for use; the links may be closed from any goroutine, but not while wait waits.
type closer struct {
	running sync.WaitGroup
	links   atomic.Int64 // that are not closed yet

	mu   sync.Mutex
	errs []error
}

// close begins to close the links, all at once: the waits for running programs
// can be shared.
func (c *closer) close(links []link.Link) {
	c.links.Add(int64(len(links)))
	for _, l := range links {
		c.running.Go(func() {
			err := l.Close()
			c.mu.Lock()
			c.errs = append(c.errs, err)
			c.mu.Unlock()
			c.links.Add(-1)
		})
	}
}

// closeAll empties the list and begins to close what was in it.
func (c *closer) closeAll(links *[]link.Link) {
	taken := *links
	*links = nil
	c.close(taken)
}

// busy reports whether the kernel may still hold one of the links.
func (c *closer) busy() bool { return c.links.Load() != 0 }

// wait waits until the links are closed.
func (c *closer) wait() { c.running.Wait() }

// takeErrors returns what went wrong since it was last asked.
func (c *closer) takeErrors() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := c.errs
	c.errs = nil
	return errors.Join(errs...)
}

// closeLinks closes the links and waits for that.
func closeLinks(links []link.Link) error {
	var c closer
	c.close(links)
	c.wait()
	return c.takeErrors()
}
