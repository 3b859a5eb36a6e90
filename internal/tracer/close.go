package tracer

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// hangingTime is how long Close waits for what reads files of processes.
const hangingTime = 5 * time.Second

// lookers are the goroutines that read files of traced processes or ask the
// user's functions. The kernel may hold them for as long as it likes.
type lookers struct {
	all     sync.WaitGroup
	running atomic.Int32
}

func (l *lookers) run(f func()) {
	l.running.Add(1)
	l.all.Go(func() {
		defer l.running.Add(-1)
		f()
	})
}

// ended is closed when none runs any more.
func (l *lookers) ended() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		l.all.Wait()
		close(ended)
	}()
	return ended
}

// look is run for what may never come back: Close does not wait for it for long.
func (t *Tracer) look(f func()) {
	t.lookers.run(func() { t.meter.run(f) })
}

// Close detaches every probe and frees every map. The probes go first, whatever
// hangs. The error tells also how many goroutines the kernel still holds after
// some seconds; the maps are freed when those come back. It may be called twice.
func (t *Tracer) Close() error {
	if !t.end() {
		return nil
	}
	if t.cancel != nil {
		t.cancel()
	}
	// The kernel takes its time for both.
	var core sync.WaitGroup
	core.Go(func() {
		t.done.Wait()
		t.resources.close()
		t.kernel.closeAll()
	})
	err := t.detach()
	core.Wait()
	close(t.completions)
	close(t.stuck)
	close(t.async)
	// What was left out in intervals that are cut short here is told, too.
	t.warnings.tellLeft(time.Now().Add(warnInterval))
	return errors.Join(err, t.free())
}

// end keeps probes from being attached any more. It is false the second time.
func (t *Tracer) end() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.closed
	t.closed = true
	return !before
}

func (t *Tracer) detach() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.libraries.close()
}

// free frees what the lookers may use, as soon as there are none.
func (t *Tracer) free() error {
	free := func() error { return errors.Join(t.side.close(), t.cache.Close()) }
	ended := t.lookers.ended()
	select {
	case <-ended:
		return free()
	case <-time.After(hangingTime):
	}
	go func() {
		<-ended
		if err := free(); err != nil {
			t.log.Warn("freeing the maps failed", "error", err)
		}
	}()
	return fmt.Errorf("all probes are off; the maps are freed when goroutines come back that wait for processes and their files (%d), "+
		"as on a network file system without its server: %s", t.lookers.running.Load(), strings.Join(t.finder.Hanging(), ", "))
}
