//go:build e2e

package tracer_test

import (
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// entryReturn observes every function at its entry and its return.
func entryReturn() tracer.Config {
	cfg := everything
	cfg.EntryReturn = true
	return cfg
}

// Without returns, post and queue are one stage, and nothing is called device.
func TestStagesWithoutReturns(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	r := simulate(t, tr, "nccl", "--seconds", "1")
	pairs := r.checkPairs()
	for _, p := range pairs {
		for _, stage := range []verbs.Stage{verbs.StagePost, verbs.StageQueue, verbs.StageDevice} {
			if p.seen.Known.Has(stage) || p.seen.Stages[stage] != 0 {
				t.Fatalf("the return of the post is not known, but %v took %v", stage, p.seen.Stages[stage])
			}
		}
		if !p.seen.Known.Has(verbs.StageSubmit) || !p.seen.Known.Has(verbs.StageCompletion) {
			t.Fatalf("known are the stages %b", p.seen.Known)
		}
	}
	if len(pairs) == 0 {
		t.Error("nothing was timed: this says nothing")
	}
}

// Threads post on one queue, and some are overtaken between our probe and the
// queue. Where the wr_ids repeat, a completion may be of either: it is
// ambiguous, with and without probes on returns, and never taken for the other.
func TestOvertakenPostsAreNoWrongPairs(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]tracer.Config{"entry": everything, "entry and return": entryReturn()} {
		for _, ids := range []string{"1", "3"} {
			t.Run(name+"/"+ids, func(t *testing.T) {
				beside(t)
				tr := startTracer(t, cfg)
				r := simulate(t, tr, "threads", "--seconds", "1.5", "--wr-ids", ids, "--overtake-us", "200")
				r.checkBooks()
				r.checkCounts()
				r.checkPairs()
				if got := r.completions(); got.Ambiguous < 100 || got.Matched < 100 || got.Matched+got.Ambiguous != got.Seen {
					t.Errorf("some are certain and some are not, but %+v", got)
				}
			})
		}
	}
}

// Probes on returns come and go while posts are refused and others overtake each
// other: no wrong pair, every refused post is counted once, and nothing is lost.
func TestReturnsComeAndGo(t *testing.T) {
	t.Parallel()
	for scenario, flags := range map[string][]string{
		"enomem":  nil,
		"threads": {"--wr-ids", "3", "--overtake-us", "100"},
		"nccl":    nil,
	} {
		t.Run(scenario, func(t *testing.T) {
			beside(t)
			tr := startTracer(t, tracer.EvidenceEvery(everything, 300*time.Millisecond))
			r := &run{t: t, collected: collect(tr), before: snapshot(t, tr)}
			w := startWorkload(t, scenario, append([]string{"--seconds", "150", "--rate", "2000"}, flags...)...)
			w.waitReady()
			w.release()
			if !r.waitForReturns(3*time.Second, 2*time.Minute) {
				t.Error("returns did not come and go: this says nothing")
			}
			w.stop()
			r.finish(tr, w)
			r.checkBooks()
			r.checkCounts()
			r.checkPairs()
			if trusted, err := tracer.TrustsSites(tr); err != nil || !trusted {
				t.Errorf("every refused post passed a site, but trusted: %v, %v", trusted, err)
			}
			t.Logf("refused posts %+v", r.after.Rejected)
		})
	}
}

// waitForReturns waits until the returns of some posts were seen and those of others
// were not, for a while at least: on a busy machine the probes of the comparison
// take seconds to go.
func (r *run) waitForReturns(least, most time.Duration) bool {
	next, returned, others := 0, 0, 0
	for begin := time.Now(); time.Since(begin) < most; time.Sleep(100 * time.Millisecond) {
		for told := r.collected.told(); next < len(told); next++ {
			if told[next].Known.Has(verbs.StagePost) {
				returned++
			} else {
				others++
			}
		}
		if returned > 0 && others > 0 && time.Since(begin) > least {
			r.t.Logf("of %d posts the returns were seen, and of %d not", returned, others)
			return true
		}
	}
	return false
}
