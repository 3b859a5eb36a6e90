//go:build e2e

package tracer_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Interrupts are watched while something is slow, and not before or after. They are
// said to be known of requests alone that were posted meanwhile.
func TestInterruptsWhileSlow(t *testing.T) {
	beside(t)
	cfg := tracer.InterruptsFor(everything, time.Second)
	cfg.Threshold = 100 * time.Millisecond
	tr := startTracer(t, cfg)
	collected := collect(tr)
	reachSites(t, tr)
	for range 2 {
		awaitInterrupts(t, tr, false)
		before := len(collected.told())
		w := startWorkload(t, "slow-device", "--latency-us", "200000", "--rate", "100", "--seconds", "60")
		w.waitReady()
		w.release()
		since := awaitInterrupts(t, tr, true)
		w.waitFor(20*time.Second, func() bool {
			return slices.ContainsFunc(collected.told()[before:], func(c verbs.Completion) bool { return c.PollerScheduling.InterruptsKnown })
		})
		w.stop()
		w.wait()
		awaitInterrupts(t, tr, false)
		slow, known := collected.told()[before:], 0
		for _, c := range slow {
			if !c.PollerScheduling.InterruptsKnown {
				continue
			}
			known++
			if c.Posted < since {
				t.Errorf("the interrupts from %d on are said to be known, and are watched from %d on", c.Posted, since)
			}
		}
		t.Logf("of %d slow requests the interrupts of %d are known", len(slow), known)
		if known == 0 || known == len(slow) {
			t.Error("the interrupts of none or of all are known, and they are watched from the first slow one on")
		}
	}
}

// awaitInterrupts waits until interrupts are watched or are not, and returns since
// when.
func awaitInterrupts(t *testing.T, tr *tracer.Tracer, watched bool) (since uint64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		_, since, err := tracer.Interrupts(tr)
		if err != nil {
			t.Fatal(err)
		}
		if (since != 0) == watched {
			return since
		}
	}
	t.Fatalf("interrupts are watched: %v, for 20 s", !watched)
	return 0
}
