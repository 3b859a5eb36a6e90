//go:build e2e

package tracer_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
	"github.com/rdmaradar/rdmaradar/internal/verbsim"
)

// untimed says what may remain without a time in a scenario, and why.
var untimed = map[string]string{
	"errors":        "failures that may be of a send or of a receive, and what follows them",
	"ext-errors":    "as errors",
	"hostile-chain": "10,000 requests in one post are more than are followed",
}

// walksDeep are the scenarios whose posts the tracer does not walk to the end,
// so that its count of requests is another one than the workload's.
var walksDeep = []string{"hostile-chain", "hostile-cycle"}

// A tracer that has seen nothing before observes the scenario from its first
// request on, with probes past endbr64 and on plain functions.
func TestScenariosOfFreshTracer(t *testing.T) {
	t.Parallel()
	plain := []string{"nccl", "enomem", "errors", "srq"}
	for provider, scenarios := range map[string][]string{
		"libverbsim-rdmav34.so":       append([]string{"perftest", "threads", "two-devices", "fork-exec", "hostile-chain", "ext-post"}, plain...),
		"libverbsim-rdmav34-nocet.so": plain,
	} {
		for _, scenario := range scenarios {
			t.Run(scenario+"/"+provider, func(t *testing.T) {
				beside(t)
				tr := startTracer(t, everything)
				learnExtended(t, tr, scenario)
				r := simulate(t, tr, scenario, "--seconds", "0.5", "--provider", binary(t, provider))
				pairs := r.checkScenario(scenario)
				if scenario != "fork-exec" {
					r.checkHistogram(pairs)
				}
			})
		}
	}
}

// checkScenario: each completion pairs with the work request that it truly is
// of, and the books balance exactly. It returns the pairs.
func (r *run) checkScenario(scenario string) []pair {
	r.t.Helper()
	r.checkBooks()
	r.checkTimed(scenario)
	// The truth is of one process; fork-exec has several.
	if scenario == "fork-exec" {
		return nil
	}
	if !slices.Contains(walksDeep, scenario) {
		r.checkCounts()
	}
	return r.checkPairs()
}

// Every scenario at completion sites alone, one tracer for all.
func TestEveryScenarioAtSites(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	collected := collect(tr)
	reachSites(t, tr)
	learnExtended(t, tr, "ext-both")
	for _, scenario := range verbsim.Scenarios() {
		t.Run(scenario, func(t *testing.T) {
			learnDatagrams(t, tr, collected, scenario)
			r := followWith(t, tr, collected, scenario, "--seconds", "0.3")
			pairs := r.checkScenario(scenario)
			if scenario == "late-poller" || scenario == "slow-device" {
				r.checkLatePoller(pairs)
			}
			// A suspicion or an idle unsynced queue brings entry and return
			// back for a while; what must not be is that sites are given up.
			if mode := simMode(t, tr); mode == "windows" {
				t.Error("the completion sites were given up")
			} else if mode != "site" {
				t.Logf("completions are now observed by %s", mode)
			}
		})
	}
}

// The same at entry and return alone, the mode windows: post and queue are known
// apart.
func TestEveryScenarioInWindows(t *testing.T) {
	beside(t)
	tr := startTracer(t, entryReturn())
	collected := collect(tr)
	learnExtended(t, tr, "ext-both")
	for _, scenario := range verbsim.Scenarios() {
		t.Run(scenario, func(t *testing.T) {
			learnDatagrams(t, tr, collected, scenario)
			r := followWith(t, tr, collected, scenario, "--seconds", "0.3")
			for _, p := range r.checkScenario(scenario) {
				if p.seen.Known.Has(verbs.StageSubmit) || !p.seen.Known.Has(verbs.StagePost) {
					t.Fatalf("the return of a post was probed, known are the stages %b", p.seen.Known)
				}
			}
			if mode := simMode(t, tr); mode != "windows" {
				t.Errorf("completions are observed by %s", mode)
			}
		})
	}
}

// checkLatePoller: without a probe on polls, a poller that was off its CPU is
// still told from a device that was slow; what has no evidence is one stage.
func (r *run) checkLatePoller(pairs []pair) {
	r.t.Helper()
	var poll, total time.Duration
	for _, p := range pairs {
		total += p.seen.Duration()
		poll += p.seen.Stages[verbs.StagePoll]
	}
	late := time.Duration(lateShare(pairs) * float64(total))
	r.t.Logf("together %v, truly polled late by %v, in the stage poll %v", total, late, poll)
	// Half of the time the late poller sleeps, half of it it computes.
	if r.truth.Scenario == "late-poller" && poll < late/4 {
		r.t.Error("a sleeping poller does not show in the stage poll")
	}
	// The machine may preempt the poller in earnest; an upper bound may be a
	// time slice too long.
	if r.truth.Scenario == "slow-device" && poll > 2*late+total/10 {
		r.t.Error("a slow device was blamed on the poller")
	}
}

// reachSites runs load until the simulator's poll_cq is observed at its
// completion sites.
func reachSites(t *testing.T, tr *tracer.Tracer) {
	t.Helper()
	w := startWorkload(t, "nccl", "--seconds", "60")
	w.waitReady()
	w.release()
	waitForMode(t, tr, "site")
	w.stop()
	w.wait()
}

func simMode(t *testing.T, tr *tracer.Tracer) string {
	t.Helper()
	s := snapshot(t, tr)
	return simProbe(t, &s).Mode
}

// checkHistogram demands that the kernel side put every duration into the
// bucket that it belongs to, and that sums and extremes are those of the pairs.
func (r *run) checkHistogram(pairs []pair) {
	r.t.Helper()
	if uint64(len(pairs)) != r.matched() {
		return // Some reports were dropped: there is no telling which.
	}
	var want, got verbs.Series
	edges := verbs.HistogramEdges()
	for _, p := range pairs {
		duration := p.seen.Duration()
		bucket, _ := slices.BinarySearch(edges[:], uint64(duration))
		want.Durations.Counts[min(bucket, len(edges)-1)]++
		want.Sum += duration
		want.Max = max(want.Max, duration)
		for i, stage := range p.seen.Stages {
			want.StageTime[i] += stage
		}
	}
	r.series(func(s *verbs.Series) {
		for i, n := range s.Durations.Counts {
			got.Durations.Counts[i] += n
		}
		got.Sum += s.Sum
		got.Max = max(got.Max, s.Max)
		for i, stage := range s.StageTime {
			got.StageTime[i] += stage
		}
	})
	if got != want {
		r.t.Errorf("the aggregates are not those of the completions:\ngot  %+v\nwant %+v", got, want)
	}
}

// checkTimed demands that every send was timed unless there is a reason.
func (r *run) checkTimed(scenario string) {
	r.t.Helper()
	if scenario == "fork-exec" {
		right, wrong := r.pairs()
		if len(wrong) > 0 {
			r.t.Errorf("%d wrong pairs, the first: %s", len(wrong), wrong[0])
		}
		if uint64(len(right)) != r.truth.Counts.Completions {
			r.t.Errorf("%d timed after the exec, of %d", len(right), r.truth.Counts.Completions)
		}
		return
	}
	if reason, ok := untimed[scenario]; ok {
		r.t.Logf("%d of %d timed: %s", r.matched(), r.truth.Counts.Completions, reason)
		return
	}
	c := r.completions()
	if c.Matched+c.Ambiguous != r.truth.Counts.Completions || c.Ambiguous > 0 && scenario != "threads" {
		r.t.Errorf("%d timed and %d ambiguous, of %d", c.Matched, c.Ambiguous, r.truth.Counts.Completions)
	}
	requests, bytes := uint64(0), uint64(0)
	r.series(func(s *verbs.Series) {
		if s.Key.Operation != verbs.OpRecv && s.Key.Status == verbs.StatusSuccess {
			requests += s.Requests
			bytes += s.Bytes
		}
	})
	if want := r.truth.Counts.Completions + r.truth.Counts.UnsignaledRetired; requests != want {
		r.t.Errorf("%d work requests completed, by the workload %d", requests, want)
	}
	if want := r.truth.Counts.SendBytes + r.truth.Counts.ReadBytes; bytes != want {
		r.t.Errorf("%d bytes completed, by the workload %d", bytes, want)
	}
}
