//go:build e2e

package tracer_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// simProbe is how poll_cq of the simulator is observed.
func simProbe(t *testing.T, s *verbs.Snapshot) verbs.ProbeInfo {
	t.Helper()
	for _, probe := range s.Probes {
		if filepath.Base(probe.Library) == "libverbsim-rdmav34.so" && probe.Functions[0] == "poll_cq" {
			return probe
		}
	}
	t.Fatal("poll_cq of the simulator is not probed")
	return verbs.ProbeInfo{}
}

// A library over its bound is observed in windows. In the gaps nothing counts,
// and what is counted balances; each window begins unsynced, and rising wr_ids
// align it. No completion is paired with another's request.
func TestWindowsHoldTheBound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, scenario string
		flags          []string
		entryReturn    bool
		mode           string
		timed          bool
	}{
		{"site, rising wr_ids", "rate", []string{"--rate", "40000", "--qps", "2", "--depth", "128", "--latency-us", "1000"}, false, "site", true},
		{"entry and return, rising wr_ids", "rate", []string{"--rate", "40000", "--qps", "2", "--depth", "128", "--latency-us", "1000"}, true, "windows", true},
		{"one wr_id", "perftest-lat", nil, true, "windows", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			beside(t)
			cfg := everything
			cfg.MaxThreadCPURatio = 0.05
			cfg.EntryReturn = c.entryReturn
			tr := startTracer(t, cfg)
			r := &run{t: t, collected: collect(tr), before: snapshot(t, tr)}
			w := startWorkload(t, c.scenario, append([]string{"--requests", "100000000", "--seconds", "150"}, c.flags...)...)
			w.waitReady()
			w.release()
			least := r.watchShare(tr, func() bool {
				return r.lost("window_end") > 0 && (!c.timed || r.matched() >= 100)
			})
			w.stop()
			r.truth, r.records = w.wait()
			waitUntilCalm(t, tr)
			r.settle(tr)
			r.checkBooks()
			r.checkPairs()
			got := r.completions()
			if probe := simProbe(t, &r.after); probe.Mode != c.mode {
				t.Errorf("the mode is %s, not %s", probe.Mode, c.mode)
			}
			if least > 0.5 {
				t.Errorf("the share observed was %.2f at the least: the bound was not held", least)
			}
			if got.Seen == 0 || got.Seen >= r.truth.Counts.Completions {
				t.Errorf("%d completions seen of %d", got.Seen, r.truth.Counts.Completions)
			}
			if r.lost("window_end") == 0 {
				t.Error("nothing was outstanding at the end of a window: this says nothing")
			}
			if c.timed && got.Matched < 100 {
				t.Errorf("windows do not align: %+v", got)
			}
		})
	}
}

// Taking probes off holds nobody up but the library's next window. What is
// outstanding is given up once they are gone.
func TestNothingWaitsForProbesThatGo(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	r := &run{t: t, collected: collect(tr), before: snapshot(t, tr)}
	w := startWorkload(t, "rate", "--rate", "20000", "--qps", "2", "--depth", "128", "--latency-us", "1000", "--requests", "100000000", "--seconds", "50")
	w.waitReady()
	w.release()
	waitForMode(t, tr, "site")
	release, err := tracer.CloseWindows(tr)
	if err != nil {
		t.Fatal(err)
	}
	// The first one still tells of the time before.
	snapshot(t, tr)
	time.Sleep(time.Second)
	held := snapshot(t, tr)
	release()
	if share := simProbe(t, &held).Observed; share != 0 {
		t.Errorf("observed for %.2f of the time, with a probe of the last window still there", share)
	}
	if n := held.Losses["window_end"]; n != 0 {
		t.Errorf("%d requests were given up while programs may work on them", n)
	}
	waitUntilCalm(t, tr)
	w.stop()
	r.finish(tr, w)
	r.checkBooks()
	r.checkPairs()
	if r.lost("window_end") == 0 {
		t.Error("nothing was outstanding when the window ended: this says nothing")
	}
}

// watchShare takes snapshots until there was enough of windows, for some of them at
// least, and returns the least share that was observed. Where probes take seconds to
// go, the gap that makes up for what they cost until then is a minute.
func (r *run) watchShare(tr *tracer.Tracer, enough func() bool) float64 {
	r.t.Helper()
	const every, enoughTime, limit = time.Second, 6 * time.Second, 2 * time.Minute
	least := 1.0
	for begin := time.Now(); time.Since(begin) < enoughTime || !enough() && time.Since(begin) < limit; {
		time.Sleep(every)
		r.after = snapshot(r.t, tr)
		share := simProbe(r.t, &r.after).Observed
		least = min(least, share)
		r.t.Logf("observed %.3f of the time, %d completions, %d requests lost at ends of windows", share, r.after.Completions.Seen, r.after.Losses["window_end"])
	}
	return least
}

// Sites are suspected again and again while requests with one wr_id fly: each
// time entry and return come, are compared with and go, until the sites are given
// up. No completion is delivered twice or by nobody, which would pair it with the
// next request.
func TestModesChangeUnderLoad(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	r := &run{t: t, collected: collect(tr), before: snapshot(t, tr)}
	w := startWorkload(t, "rate", "--rate", "15000", "--qps", "2", "--depth", "64", "--wr-ids", "1",
		"--latency-us", "300", "--requests", "100000000", "--seconds", "600")
	w.waitReady()
	w.release()
	var modes []string
	for range 5 {
		modes = append(modes, waitForMode(t, tr, "site", "windows"))
		if err := tracer.Suspect(tr); err != nil {
			t.Fatal(err)
		}
		if modes[len(modes)-1] == "site" {
			waitForSuspicion(t, tr, len(modes))
		}
	}
	w.stop()
	r.finish(tr, w)
	r.checkBooks()
	r.checkCounts()
	r.checkPairs()
	got := r.completions()
	t.Logf("modes %v", modes)
	if modes[0] != "site" || modes[len(modes)-1] != "windows" {
		t.Errorf("the modes were %v", modes)
	}
	if got.Matched != r.truth.Counts.Completions {
		t.Errorf("%d of %d were timed: %+v", got.Matched, r.truth.Counts.Completions, got)
	}
}

// waitForSuspicion waits until the sites were suspected that often, and so compared
// again: that may be over in some tens of milliseconds. What is suspected while they are
// compared is settled by that, and is suspected anew.
func waitForSuspicion(t *testing.T, tr *tracer.Tracer, times int) {
	t.Helper()
	library := binary(t, "libverbsim-rdmav34.so")
	// Where others attach and take off probes as well, each may take seconds.
	deadline, again := time.Now().Add(2*time.Minute), time.Now().Add(2*time.Second)
	for ; tracer.Failures(tr, library) < times; time.Sleep(20 * time.Millisecond) {
		now := time.Now()
		if now.After(deadline) {
			s := snapshot(t, tr)
			t.Fatalf("the sites were suspected %d times, not %d; the probes: %+v", tracer.Failures(tr, library), times, simProbe(t, &s))
		}
		if now.After(again) {
			again = now.Add(2 * time.Second)
			if err := tracer.Suspect(tr); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func waitForMode(t *testing.T, tr *tracer.Tracer, wanted ...string) string {
	t.Helper()
	mode := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		s := snapshot(t, tr)
		if mode = simProbe(t, &s).Mode; slices.Contains(wanted, mode) {
			return mode
		}
	}
	t.Fatalf("the mode is still %s, not one of %v", mode, wanted)
	return ""
}

// In moments in which the entry of poll_cq is probed beside the sites, a thread
// that was on its CPU and did not poll is told from a device that was slow. What
// is known of a completion is not less than how late it truly was, but for threads
// that did something else and were preempted just before they polled: then the
// evidence is when they left their CPU.
func TestEvidenceTellsLatePollers(t *testing.T) {
	beside(t)
	tr := startTracer(t, tracer.EvidenceEvery(everything, 200*time.Millisecond))
	collected := collect(tr)
	reachSites(t, tr)
	for _, scenario := range []string{"late-poller", "slow-device"} {
		t.Run(scenario, func(t *testing.T) {
			r := followUntil(t, tr, collected, 400, func(c *verbs.Completion) bool { return c.Known.Has(verbs.StagePoll) }, scenario)
			r.checkBooks()
			pairs := r.checkPairs()
			known, understated := 0, 0
			for _, p := range pairs {
				if !p.seen.Known.Has(verbs.StagePoll) {
					continue
				}
				known++
				// Of a thread that another one kept off its CPU the scheduler tells.
				if p.seen.PollerScheduling.Runnable < tolerance && p.seen.Stages[verbs.StagePoll]+50*time.Microsecond < p.late() {
					understated++
				}
			}
			t.Logf("of %d completions the stage poll is known of %d", len(pairs), known)
			if known < 100 {
				t.Error("there was no evidence: this says nothing")
			}
			if scenario == "late-poller" && understated > known/10 {
				t.Errorf("of %d, %d were polled later than the stage poll says", known, understated)
			}
			r.checkLatePoller(pairs)
		})
	}
}

// waitUntilCalm waits until the library is observed all the time again.
func waitUntilCalm(t *testing.T, tr *tracer.Tracer) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		time.Sleep(time.Second)
		s := snapshot(t, tr)
		if simProbe(t, &s).Observed == 1 {
			return
		}
	}
	t.Error("nothing happens, but the library is still observed in windows")
}
