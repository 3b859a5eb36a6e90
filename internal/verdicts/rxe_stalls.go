package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stalls watches for moments in which the emulated processor stood still, because the
// host had something else to do. To the guest whatever waited then seems slow by itself.
type stalls struct {
	mu sync.Mutex
	// last is when one ended that was too long.
	last time.Time
}

const (
	// stallCheck is how often it is looked.
	stallCheck = 5 * time.Millisecond
	// mostStall is how long the processor may stand still. For less than 50 ms a single
	// request that is slow is no incident.
	mostStall = 40 * time.Millisecond
	// stallAttempts is how often a scenario is played before it counts all the same.
	stallAttempts = 3
)

// watch looks for stalls as long as the program runs, on a thread that goes before all
// others of the guest.
func (s *stalls) watch() error {
	// One that comes back from the kernel is not to wait for another goroutine.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 50}, 0)
		started <- err
		if err == nil {
			s.run()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("a thread that goes before all others: %w", err)
	}
	return nil
}

func (s *stalls) run() {
	rest := unix.NsecToTimespec(stallCheck.Nanoseconds())
	for before := time.Now(); ; {
		_ = unix.Nanosleep(&rest, nil) // A signal only makes it shorter.
		now := time.Now()
		if now.Sub(before)-stallCheck > mostStall {
			s.note(now)
		}
		before = now
	}
}

func (s *stalls) note(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = at
}

// since reports whether the processor stood still since a moment.
func (s *stalls) since(moment time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.After(moment)
}
