package tracer

import (
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

var epoch = time.Unix(1_800_000_000, 0)

func counted(completions, empty, wrong uint64, inside uint32) bpf.TrackerPollFunction {
	return bpf.TrackerPollFunction{Completions: completions, EmptyPolls: empty, WrongCount: wrong, Inside: inside}
}

func TestLadder(t *testing.T) {
	type sight struct {
		at         time.Duration
		function   bpf.TrackerPollFunction
		suspicions uint64
		step       ladderStep
		mode       pollMode
	}
	for _, c := range []struct {
		name     string
		hasSites bool
		sights   []sight
	}{
		{"without sites there is nothing to climb to", false, []sight{
			{0, counted(1000, 1000, 0, 0), 0, stepStay, modeWindows},
			{time.Hour, counted(9000, 9000, 0, 0), 7, stepStay, modeWindows},
		}},
		{"enough that agrees", true, []sight{
			{1, counted(63, 1000, 0, 1), 0, stepStay, modeComparing},
			{2, counted(1000, 63, 0, 1), 0, stepStay, modeComparing},
			{3, counted(1000, 64, 0, 1), 0, stepTrust, modeComparing},
			{4, counted(1000, 64, 0, 1), 0, stepStay, modeComparing},
			{5, counted(1000, 64, 0, 0), 0, stepLeave, modeSite},
			{6, counted(1000, 64, 0, 0), 0, stepStay, modeSite},
		}},
		{"a count that disagrees", true, []sight{
			{1, counted(1000, 1000, 1, 0), 0, stepRefute, modeComparing},
		}},
		{"contents that disagree", true, []sight{
			{1, bpf.TrackerPollFunction{Completions: 1000, EmptyPolls: 1000, WrongContent: 1}, 0, stepRefute, modeComparing},
		}},
		{"a thread that ended inside of a poll", true, []sight{
			{1, counted(64, 64, 0, 1), 0, stepTrust, modeComparing},
			{1 + leavingTime - 1, counted(64, 64, 0, 1), 0, stepStay, modeComparing},
			{1 + leavingTime, counted(64, 64, 0, 1), 0, stepLeave, modeSite},
		}},
		{"what was counted before does not count again", true, []sight{
			{1, counted(64, 64, 0, 0), 0, stepTrust, modeComparing},
			{2, counted(64, 64, 0, 0), 5, stepLeave, modeSite},
			{3, counted(64, 64, 0, 0), 5, stepStay, modeSite},
			{4, counted(64, 64, 0, 0), 6, stepCompare, modeComparing},
			{5, counted(100, 100, 0, 0), 6, stepStay, modeComparing},
			{6, counted(128, 128, 0, 0), 6, stepTrust, modeComparing},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLadder(epoch, c.hasSites, provider.Unverified)
			for i, s := range c.sights {
				step, _ := l.next(sighting{now: epoch.Add(s.at), function: s.function, suspicions: s.suspicions})
				if step != s.step || l.mode != s.mode {
					t.Fatalf("sight %d: step %d and mode %s, want %d and %s", i, step, l.mode, s.step, s.mode)
				}
			}
		})
	}
}

// suspectAndVerify lets a completion not add up and the sites agree again, and
// returns the last step of the comparison.
func suspectAndVerify(l *ladder, now time.Time, n uint64) ladderStep {
	before := counted(n*100, n*100, 0, 0)
	after := counted(n*100+64, n*100+64, 0, 0)
	l.next(sighting{now: now, function: before, suspicions: n})
	step, _ := l.next(sighting{now: now, function: after, suspicions: n})
	if step == stepTrust {
		l.next(sighting{now: now, function: after, suspicions: n})
	}
	return step
}

func TestSuspicionsGiveSitesUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		apart time.Duration
		want  ladderStep
	}{
		{"in a row", time.Minute, stepGiveUp},
		{"far apart", forgivenAfter + 1, stepTrust},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLadder(epoch, true, provider.Unverified)
			l.enter(modeSite, epoch)
			now := epoch
			var last ladderStep
			for n := range uint64(mostFailures + 1) {
				now = now.Add(c.apart)
				last = suspectAndVerify(&l, now, n+1)
				if n < mostFailures && last != stepTrust {
					t.Fatalf("suspicion %d: step %d", n+1, last)
				}
			}
			if last != c.want {
				t.Errorf("step %d after %d suspicions, want %d", last, mostFailures+1, c.want)
			}
		})
	}
}

// A library that was not observed for a while holds nothing of that time against
// its sites.
func TestLadderResumes(t *testing.T) {
	l := newLadder(epoch, true, provider.Unverified)
	l.next(sighting{now: epoch, function: counted(64, 64, 0, 3)})
	l.resume(sighting{now: epoch, suspicions: 9})
	if l.mode != modeSite {
		t.Errorf("trusted sites are %s after a gap", l.mode)
	}
	if step, _ := l.next(sighting{now: epoch, function: counted(64, 64, 0, 0), suspicions: 9}); step != stepStay {
		t.Errorf("step %d for what happened in the gap", step)
	}
}

// TestLadderOfKnownSites: what was verified before is not compared again, unless
// a completion does not add up.
func TestLadderOfKnownSites(t *testing.T) {
	l := newLadder(epoch, true, provider.Verified)
	if l.mode != modeSite {
		t.Fatalf("verified sites begin in the mode %s", l.mode)
	}
	if step, _ := l.next(sighting{now: epoch, suspicions: 1}); step != stepCompare {
		t.Errorf("step %d after a completion that did not add up", step)
	}
	if l := newLadder(epoch, false, provider.Verified); l.mode != modeWindows {
		t.Errorf("without usable sites it begins in the mode %s", l.mode)
	}
}
