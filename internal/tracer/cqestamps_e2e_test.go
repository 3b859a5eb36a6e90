//go:build e2e

package tracer_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// mlx5Provider completes as devices of mlx5 do, with time stamps.
const mlx5Provider = "libverbsim-rdmav34-mlx5.so"

// startLatePoller runs a thread that is late now and then on the provider with
// time stamps, until it is stopped.
func startLatePoller(t *testing.T) *workload {
	t.Helper()
	w := startWorkload(t, "late-poller", "--seconds", "50", "--provider", binary(t, mlx5Provider))
	w.waitReady()
	w.release()
	return w
}

// The time stamps of a device tell how long its completions waited for the
// poller, once its clock is proven, which takes some seconds.
func TestTimeStampsTellTheLatePoller(t *testing.T) {
	requireRoot(t)
	stop, err := keepMapped(mlx5Provider)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	tr := startTracer(t, tracer.Config{Threshold: 50 * time.Microsecond, EventBytes: 16 << 20, CQETimestamps: true})
	r := &run{t: t, collected: collect(tr), before: snapshot(t, tr)}
	w := startLatePoller(t)
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline) && r.toldAfterTheProof() < 500; {
		time.Sleep(200 * time.Millisecond)
	}
	if err := w.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.truth, r.records = w.wait()
	time.Sleep(600 * time.Millisecond)
	r.seen = r.collected.settle()
	r.after = snapshot(t, tr)
	r.checkBooks()
	pairs := r.checkPairs()
	var errors []time.Duration
	untold := 0
	for _, p := range pairs {
		waited := time.Duration(p.seen.Delivered - p.truth.Due)
		switch {
		case !p.seen.Known.Has(verbs.StagePoll):
			untold++
		case p.truth.Due != 0 && waited > 0:
			errors = append(errors, p.seen.Stages[verbs.StagePoll]-waited)
		}
	}
	slices.Sort(errors)
	t.Logf("told %d, untold %d, off by %v in the median, %v to %v", len(errors), untold, errors[len(errors)/2], errors[0], errors[len(errors)-1])
}

// toldAfterTheProof counts slow completions of which it is known how long they
// waited.
func (r *run) toldAfterTheProof() (n int) {
	r.collected.mu.Lock()
	defer r.collected.mu.Unlock()
	for i := range r.collected.completions {
		if r.collected.completions[i].Known.Has(verbs.StagePoll) {
			n++
		}
	}
	return n
}
