//go:build e2e

package tracer_test

import (
	"syscall"
	"testing"
	"time"
)

// Who polls is told of each queue, and of that thread for how long it has been
// stopped, while it is.
func TestPollerThatIsStopped(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	collect(tr)
	w := startWorkload(t, "slow-device", append([]string{"--seconds", "30"}, oneSpinner...)...)
	w.waitReady()
	w.release()
	time.Sleep(500 * time.Millisecond)
	w.signal(syscall.SIGSTOP)
	time.Sleep(200 * time.Millisecond)
	glance, err := tr.Glance(false)
	if err != nil {
		t.Fatal(err)
	}
	thread := uint32(w.command.Process.Pid)
	found := 0
	for _, q := range glance.Queues {
		if q.ID.Process.TGID != thread || q.Posted == 0 {
			continue
		}
		found++
		if q.Poller != thread {
			t.Errorf("thread %d polls for QP 0x%x, not the only thread %d", q.Poller, q.ID.QPNumber, thread)
		}
	}
	if found == 0 {
		t.Error("the workload has no queue")
	}
	const held = 100 * time.Millisecond
	time.Sleep(held)
	s, ok := tr.Scheduling(thread, glance.Monotonic)
	if !ok || !s.Whole || s.Stopped < held || s.Runnable+s.Asleep > 0 {
		t.Errorf("known: %t, %+v", ok, s)
	}
	if s, ok := tr.Scheduling(1, glance.Monotonic); ok {
		t.Errorf("the first process neither posts nor polls: %+v", s)
	}
	w.signal(syscall.SIGCONT)
	w.stop()
	w.wait()
}
