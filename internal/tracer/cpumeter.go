package tracer

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// cpuMeter adds up the CPU time of the goroutines that run under it. The runtime
// tells the time of all goroutines together, those of other components of the
// collector too; the kernel tells that of a thread, and a goroutine that is
// locked to a thread is alone on it. Its zero value is ready for use, from any
// goroutine.
type cpuMeter struct {
	mu    sync.Mutex
	ended time.Duration
	// running are the threads that work at this moment, by what their clocks
	// showed when they began.
	running map[int]time.Duration
}

// run does the work and counts its CPU time, while it goes on too.
func (m *cpuMeter) run(work func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	begin := threadTime(thread)
	m.mu.Lock()
	if m.running == nil {
		m.running = map[int]time.Duration{}
	}
	m.running[thread] = begin
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.running, thread)
		m.ended += threadTime(thread) - begin
	}()
	work()
}

// total is the CPU time so far.
func (m *cpuMeter) total() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := m.ended
	for thread, begin := range m.running {
		sum += max(threadTime(thread)-begin, 0)
	}
	return sum
}

// threadTime is the CPU time of a thread of this process, 0 if it cannot be read.
func threadTime(thread int) time.Duration {
	// The clock of a thread, as pthread_getcpuclockid(3) makes it of its number:
	// CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED of linux/posix-timers_types.h.
	const perThreadScheduled = 4 | 2
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^thread<<3|perThreadScheduled), &spent); err != nil {
		return 0
	}
	return time.Duration(spent.Nano())
}
