//go:build e2e

package tracer_test

import (
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// When completions begin to be slow polls are looked at, out of turn, and not any
// more when they are fast again: then nothing of it is left.
func TestLooksWhileSlow(t *testing.T) {
	beside(t)
	cfg := tracer.EvidenceEvery(everything, time.Hour)
	cfg.Threshold = 100 * time.Millisecond
	tr := startTracer(t, cfg)
	collected := collect(tr)
	reachSites(t, tr)

	w := startWorkload(t, "slow-device", "--latency-us", "100", "--rate", "1000", "--seconds", "3")
	fast := watchLooks(tr, w, nil)
	if n := len(collected.told()); fast > 0 && n == 0 {
		t.Errorf("%d looks while nothing was slow", fast)
	} else if n > 0 {
		t.Logf("this machine made %d requests slow by itself", n)
	}

	looked := 0
	w = startWorkload(t, "slow-device", "--latency-us", "200000", "--rate", "100", "--seconds", "60")
	slow := watchLooks(tr, w, func() bool {
		looked = 0
		for _, c := range collected.told() {
			// The returns of posts are probed meanwhile.
			if c.Known.Has(verbs.StageDevice) && c.Known.Has(verbs.StagePoll) {
				looked++
			}
		}
		return looked > 0
	})
	if slow == 0 {
		t.Error("no look at polls while requests were slow")
	}
	t.Logf("of %d slow requests %d were looked at", len(collected.told()), looked)
	if looked == 0 {
		t.Error("the looks told nothing")
	}
	awaitNoLooks(t, tr)
}

// awaitNoLooks waits until the last look has ended and no other one begins: what was
// slow at the end of a workload may still bring one.
func awaitNoLooks(t *testing.T, tr *tracer.Tracer) {
	t.Helper()
	calm := time.Now()
	for deadline := calm.Add(30 * time.Second); time.Since(calm) < 3*time.Second; time.Sleep(20 * time.Millisecond) {
		if tracer.Looks(tr) {
			calm = time.Now()
		}
		if calm.After(deadline) {
			t.Fatal("polls are looked at while nothing happens")
		}
	}
}

// Looks tell a thread that polls another Completion Queue, and this one late, from
// one that polls nothing.
func TestLooksTellWhatIsPolled(t *testing.T) {
	beside(t)
	tr := startTracer(t, tracer.EvidenceEvery(everything, 200*time.Millisecond))
	collected := collect(tr)
	reachSites(t, tr)
	for _, c := range []struct {
		scenario  string
		elsewhere bool
	}{{"starved-cq", true}, {"busy-poller", false}} {
		t.Run(c.scenario, func(t *testing.T) {
			isLate := func(c *verbs.Completion) bool {
				poll := c.Stages[verbs.StagePoll]
				// Where the thread lost its CPU it polled nothing.
				return c.HasElsewhere && poll >= 2*time.Millisecond && c.PollerScheduling.Runnable <= poll/10
			}
			r := followUntil(t, tr, collected, 10, isLate, c.scenario, "--late-us", "3000")
			r.checkBooks()
			right, late := 0, 0
			for _, p := range r.checkPairs() {
				if !isLate(p.seen) {
					continue
				}
				late++
				if (p.seen.Elsewhere > p.seen.Stages[verbs.StagePoll]/2) == c.elsewhere {
					right++
				}
			}
			t.Logf("of %d that were polled late %d are told right", late, right)
			// What is told of other queues is a lower bound: an interrupt is a
			// pause, too.
			least := late * 9 / 10
			if c.elsewhere {
				least = late / 2
			}
			if late < 5 || right < least {
				t.Error("what the thread polled is not known")
			}
		})
	}
}

// watchLooks runs a workload until there was enough of it, with nil to its own end,
// and counts the looks that begin.
func watchLooks(tr *tracer.Tracer, w *workload, enough func() bool) (begun int) {
	w.t.Helper()
	ended, counted := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for was := false; ; time.Sleep(20 * time.Millisecond) {
			select {
			case <-ended:
				counted <- n
				return
			default:
			}
			is := tracer.Looks(tr)
			if is && !was {
				n++
			}
			was = is
		}
	}()
	defer func() {
		close(ended)
		begun = <-counted
	}()
	w.waitReady()
	w.release()
	if enough != nil {
		w.waitFor(30*time.Second, enough)
		w.stop()
	}
	w.wait()
	return 0
}
