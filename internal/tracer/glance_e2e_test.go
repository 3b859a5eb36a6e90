//go:build e2e

package tracer_test

import (
	"reflect"
	"syscall"
	"testing"
	"time"
)

// A glance shows the same queues as a snapshot, and takes nothing away from the
// next one: neither peaks nor processes that have exited.
func TestGlanceChangesNothing(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	collect(tr)
	w := startWorkload(t, "nccl", "--seconds", "30")
	w.waitReady()
	w.release()
	time.Sleep(500 * time.Millisecond)
	if err := w.command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Its threads stop on their way out of the kernel, and so of the programs.
	time.Sleep(200 * time.Millisecond)
	for range 3 {
		if _, err := tr.Glance(true); err != nil {
			t.Fatal(err)
		}
	}
	glance, err := tr.Glance(true)
	if err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, tr)
	if len(s.Queues) == 0 || len(glance.Queues) != len(s.Queues) {
		t.Fatalf("%d queues at a glance, %d in the snapshot", len(glance.Queues), len(s.Queues))
	}
	posted := uint64(0)
	for i, q := range glance.Queues {
		// The ages are of different moments.
		q.Oldest, s.Queues[i].Oldest = 0, 0
		if !reflect.DeepEqual(q, s.Queues[i]) {
			t.Errorf("%+v at a glance, %+v in the snapshot", q, s.Queues[i])
		}
		posted += q.Posted
		if q.Posted > 0 && (q.Activity == 0 || q.Activity > glance.Monotonic || q.Delivered > q.Activity) {
			t.Errorf("last active at %d, delivered at %d, now is %d", q.Activity, q.Delivered, glance.Monotonic)
		}
	}
	if posted == 0 {
		t.Error("nothing was posted")
	}
	w.kill()
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(200 * time.Millisecond) {
		if _, err := tr.Glance(false); err != nil {
			t.Fatal(err)
		}
		for _, gone := range snapshot(t, tr).Exited {
			if int(gone.TGID) == w.command.Process.Pid {
				return
			}
		}
	}
	t.Error("the exit of the process was never told")
}
