//go:build e2e

package tracer_test

import (
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// A process that was posting before the tracer came is counted at once and
// timed only when it is certain: after more posts than a queue holds with wr_ids
// that only rise, or after a drain. The workloads poll without a pause, one at a
// time: while as many do as there are CPUs, the kernel takes its time over probes.
func TestMidstream(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, scenario string
		flags          []string
		enough         func(verbs.CompletionBalance) bool
		timed          bool
	}{
		{"rising wr_ids", "rate", []string{"--rate", "50000", "--qps", "1"}, matched(10000), true},
		{"one wr_id", "perftest-lat", nil, seen(100000), false},
		{"one wr_id, long runs", "perftest", nil, seen(2000), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			beside(t)
			r := joinMidstream(t, c.enough, c.scenario, c.flags...)
			r.checkBooks()
			r.checkPairs()
			got := r.completions()
			if got.Unsynced == 0 || got.Seen == 0 {
				t.Errorf("mid-stream, but %+v", got)
			}
			if (got.Matched > 0) != c.timed {
				t.Errorf("%d were timed: %+v", got.Matched, got)
			}
		})
	}
}

// Requests that ask for no completion take room in the Send Queue as well: where one
// of 32 does, a thousand completions are enough.
func TestMidstreamOfFewCompletions(t *testing.T) {
	beside(t)
	r := joinMidstream(t, matched(2000), "rate", "--rate", "5000", "--chain", "32", "--qps", "1")
	r.checkBooks()
	r.checkPairs()
	const deepest = 32768
	if got := r.completions(); got.Unsynced == 0 || got.Unsynced > deepest/4 || got.Matched == 0 {
		t.Errorf("with one completion for 32 requests: %+v", got)
	}
}

// A drain aligns a queue on which all wr_ids are equal.
func TestDrainAligns(t *testing.T) {
	beside(t)
	r := joinMidstream(t, matched(20000), "perftest-lat", "--rate", "40000", "--pause-after", "25000", "--pause-ms", "2500")
	r.checkBooks()
	r.checkPairs()
	if got := r.completions(); got.Matched < 20000 || got.Unsynced == 0 {
		t.Errorf("before the pause none should be timed, after it all: %+v", got)
	}
}

// seen and matched say of how many completions there are enough.
func seen(n uint64) func(verbs.CompletionBalance) bool {
	return func(c verbs.CompletionBalance) bool { return c.Seen >= n }
}

func matched(n uint64) func(verbs.CompletionBalance) bool {
	return func(c verbs.CompletionBalance) bool { return c.Matched >= n }
}

// joinMidstream starts the tracer when the workload has posted for a while, and
// ends the workload when enough completions were seen.
func joinMidstream(t *testing.T, enough func(verbs.CompletionBalance) bool, scenario string, flags ...string) *run {
	t.Helper()
	requireRoot(t)
	w := startWorkload(t, scenario, append([]string{"--midstream", "--seconds", "150"}, flags...)...)
	w.release()
	w.waitReady()
	time.Sleep(200 * time.Millisecond)
	tr := startTracer(t, everything)
	r := &run{t: t, collected: collect(tr)}
	for deadline := time.Now().Add(2 * time.Minute); !enough(snapshot(t, tr).Completions) && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	w.stop()
	r.finish(tr, w)
	return r
}
