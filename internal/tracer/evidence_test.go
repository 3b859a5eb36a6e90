package tracer

import (
	"math"
	"testing"
	"time"
)

// looks plays turns of evidence for a thread that does nothing but poll, and pays
// as much of its time as probes on the entry are there.
type looks struct {
	evidence
	ratio  float64
	now    time.Time
	begun  []time.Duration // since epoch
	length time.Duration
}

func newLooks(ratio float64) *looks {
	return &looks{evidence: newEvidence(evidenceEvery, epoch), ratio: ratio, now: epoch}
}

func (l *looks) pass(d time.Duration, wanted occasion) {
	for end := l.now.Add(d); l.now.Before(end); {
		l.now = l.now.Add(turnInterval)
		was, spent := l.open, time.Duration(0)
		if was {
			spent = turnInterval
			l.length += turnInterval
		}
		if l.turn(l.now, spent, l.ratio, wanted) && !was {
			l.begun = append(l.begun, l.now.Sub(epoch))
		}
	}
}

func (l *looks) part() float64 { return float64(l.length) / float64(l.now.Sub(epoch)) }

// While nothing is slow it looks in turn.
func TestEvidenceInTurn(t *testing.T) {
	l := newLooks(0.1)
	l.pass(10*time.Minute, occasion{})
	if want := evidenceTime.Seconds() / (evidenceEvery + evidenceTime).Seconds(); math.Abs(l.part()-want) > 0.002 {
		t.Errorf("looked for %.4f of the time, want %.4f", l.part(), want)
	}
}

// When something begins to be slow it looks at once, again each second, and in the
// end as often as the budget allows.
func TestEvidenceOfSlow(t *testing.T) {
	for _, c := range []struct {
		name  string
		ratio float64
		first int // looks of the first ten seconds
		part  float64
	}{
		{"the default bound", 0.1, 4, 0.025},
		{"a tenth of it", 0.01, 3, 0.0025},
		{"no bound", 0, 10, 0.2},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLooks(c.ratio)
			l.pass(5*time.Second, occasion{})
			l.pass(10*time.Second, occasion{slow: true})
			if got := len(l.begun); got != c.first {
				t.Errorf("looked %d times in the first ten seconds, want %d: at %v", got, c.first, l.begun)
			}
			if got := l.begun[0]; got > 6*time.Second {
				t.Errorf("the first look is at %v, %v after the first slow one", got, got-5*time.Second)
			}
			for i := 1; i < len(l.begun); i++ {
				if pause := l.begun[i] - l.begun[i-1]; pause < time.Second-turnSlack {
					t.Errorf("a look after %v", pause)
				}
			}
			l.pass(30*time.Minute, occasion{slow: true})
			if allowed := time.Duration(c.part * float64(l.now.Sub(epoch))); l.length < allowed*9/10 || l.length > allowed+evidenceSaved {
				t.Errorf("looked for %v, want %v and %v more at most", l.length, allowed, evidenceSaved)
			}
		})
	}
}

// A burst that is over ends the looks out of turn.
func TestEvidenceEnds(t *testing.T) {
	l := newLooks(0)
	l.pass(time.Second, occasion{slow: true})
	l.pass(evidenceTime, occasion{})
	before := len(l.begun)
	if l.open || before == 0 {
		t.Fatalf("open: %v, after %d looks", l.open, before)
	}
	l.pass(evidenceEvery-evidenceTime-turnInterval, occasion{})
	if len(l.begun) != before {
		t.Error("it looks while nothing is slow")
	}
}

// A comparison or a gap between windows gives nothing back.
func TestEvidenceBudgetStays(t *testing.T) {
	l := newLooks(0.001)
	l.pass(10*time.Second, occasion{slow: true})
	before := len(l.begun)
	l.begin(l.now)
	l.pass(10*time.Second, occasion{slow: true})
	if len(l.begun) != before {
		t.Errorf("%d looks more", len(l.begun)-before)
	}
}

// A queue that waits for proof of a drain need not wait for its turn or the budget,
// and what its looks cost is held against no later one.
func TestEvidenceOfDrain(t *testing.T) {
	l := newLooks(0.001)
	saved := l.saved
	l.pass(10*time.Second, occasion{idle: true})
	if len(l.begun) != 10 {
		t.Errorf("looked %d times in ten seconds: at %v", len(l.begun), l.begun)
	}
	if l.saved != saved {
		t.Errorf("%v are left of %v", l.saved, saved)
	}
}

// Taking the probe off costs, too.
func TestEvidencePaysForLeaving(t *testing.T) {
	l := newLooks(0.1)
	l.turn(epoch, 0, 0.1, occasion{})
	l.turn(epoch.Add(soonEvery), 0, 0.1, occasion{slow: true})
	l.turn(epoch.Add(time.Second), evidenceTime, 0.1, occasion{})
	before := l.saved
	l.turn(epoch.Add(time.Second), 80*time.Millisecond, 0.1, occasion{})
	l.turn(epoch.Add(time.Second), 40*time.Millisecond, 0.1, occasion{})
	if got := before - l.saved; got != 80*time.Millisecond {
		t.Errorf("%v were paid for leaving, want 80 ms", got)
	}
}
