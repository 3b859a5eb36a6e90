//go:build e2e

package tracer_test

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// tolerance is how far off the told waiting may be: the simulated device completes
// when it is polled, and a probe takes its time on a busy machine.
const tolerance = 30 * time.Microsecond

// mlx5Provider completes as devices of mlx5 do, with time stamps.
const mlx5Provider = "libverbsim-rdmav34-mlx5.so"

// startLatePoller runs a thread that is late now and then on the provider with
// time stamps, until it is stopped.
func startLatePoller(t *testing.T) *workload {
	t.Helper()
	w := startWorkload(t, "late-poller", "--rate", "3000", "--seconds", "50", "--provider", binary(t, mlx5Provider))
	w.waitReady()
	w.release()
	return w
}

// The time stamps of a device tell how long its completions waited for the
// poller, once its clock is proven, which takes some seconds.
func TestTimeStampsTellTheLatePoller(t *testing.T) {
	beside(t)
	stop, err := keepMapped(homeOf(t).dir, mlx5Provider)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	tr := startTracer(t, tracer.Config{Threshold: 50 * time.Microsecond, EventBytes: 16 << 20, MaxMapBytes: 64 << 20, CQETimestamps: true})
	r := &run{t: t, collected: collect(tr), before: snapshot(t, tr)}
	w := startLatePoller(t)
	// Before, evidence of other kinds tells of some.
	untilNow := func() (now uint64) {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		return uint64(ts.Nano())
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && !tracer.ClockProven(tr); {
		time.Sleep(100 * time.Millisecond)
	}
	proven := untilNow()
	for deadline := time.Now().Add(25 * time.Second); time.Now().Before(deadline) && r.toldSince(proven) < 400; {
		time.Sleep(100 * time.Millisecond)
	}
	w.stop()
	r.truth, r.records = w.wait()
	r.settle(tr)
	r.checkBooks()
	pairs, wrong := r.pairs()
	for _, problem := range wrong {
		t.Errorf("wrong pair: %s", problem)
	}
	var off []time.Duration
	within, preempted := 0, 0
	for _, p := range pairs {
		if p.truth.Due == 0 || !p.seen.Known.Has(verbs.StagePoll) || p.seen.Delivered < proven {
			continue
		}
		// Of a thread that another one kept off its CPU the scheduler tells, and not
		// the stamp.
		if !p.seen.HasPollerScheduling || p.seen.PollerScheduling.Runnable > tolerance {
			preempted++
			continue
		}
		waited := time.Duration(max(p.seen.Delivered, p.truth.Due) - p.truth.Due)
		off = append(off, p.seen.Stages[verbs.StagePoll]-waited)
		if off[len(off)-1].Abs() < tolerance {
			within++
		}
	}
	slices.Sort(off)
	if len(off) < 100 {
		t.Fatalf("of %d slow completions %d are told", len(pairs), len(off))
	}
	t.Logf("told %d of %d besides %d of a preempted thread, off by %v in the median, by %v to %v, %d by less than %v",
		len(off), len(pairs), preempted, off[len(off)/2], off[0], off[len(off)-1], within, tolerance)
	if within < len(off)*3/4 || off[len(off)/2].Abs() > tolerance {
		t.Errorf("%d of %d are off by more than %v", len(off)-within, len(off), tolerance)
	}
}

// toldSince counts slow completions of which it is known how long they waited.
func (r *run) toldSince(moment uint64) (n int) {
	r.collected.mu.Lock()
	defer r.collected.mu.Unlock()
	for i := range r.collected.completions {
		c := &r.collected.completions[i]
		if c.Delivered >= moment && c.Known.Has(verbs.StagePoll) {
			n++
		}
	}
	return n
}
