package suite

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stallWitness records when the emulated CPU stood still: a thread of the
// highest real-time priority sleeps a millisecond at a time and notes when it
// slept for much longer. Nothing the guest schedules can delay it; a busy host
// can, by not running the guest. A request that was under way then is truly
// slow, and no fault of the wire.
type stallWitness struct {
	stop chan struct{}
	done chan error
	mu   sync.Mutex
	gaps []gap
}

type gap struct{ from, to time.Time }

const (
	stallStep  = time.Millisecond
	stallNoted = 4 * time.Millisecond
)

func startStallWitness() (*stallWitness, error) {
	// Without this the kernel takes the CPU from real-time threads for 50 ms of
	// every second.
	if err := os.WriteFile("/proc/sys/kernel/sched_rt_runtime_us", []byte("-1"), 0); err != nil {
		return nil, err
	}
	w := &stallWitness{stop: make(chan struct{}), done: make(chan error, 1)}
	started := make(chan error)
	go w.run(started)
	return w, <-started
}

func (w *stallWitness) run(started chan<- error) {
	// The thread dies with its goroutine, and its priority with it.
	runtime.LockOSThread()
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 99}
	if err := unix.SchedSetAttr(0, attr, 0); err != nil {
		started <- fmt.Errorf("real-time priority: %w", err)
		return
	}
	started <- nil
	step := unix.NsecToTimespec(int64(stallStep))
	last := time.Now()
	for {
		select {
		case <-w.stop:
			w.done <- nil
			return
		default:
		}
		_ = unix.Nanosleep(&step, nil)
		now := time.Now()
		if now.Sub(last) > stallStep+stallNoted {
			w.mu.Lock()
			w.gaps = append(w.gaps, gap{last, now})
			w.mu.Unlock()
		}
		last = now
	}
}

// end stops the witness.
func (w *stallWitness) end() {
	close(w.stop)
	<-w.done
}

// within returns for how long the CPU stood still between two moments.
func (w *stallWitness) within(from, to time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return overlap(w.gaps, from, to)
}

func overlap(gaps []gap, from, to time.Time) time.Duration {
	total := time.Duration(0)
	for _, g := range gaps {
		begin, end := g.from, g.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		total += max(end.Sub(begin), 0)
	}
	return total
}
