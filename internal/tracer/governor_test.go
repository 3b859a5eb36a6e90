package tracer

import (
	"math"
	"testing"
	"time"
)

// simulate turns a schedule with a fake clock. A thread pays the share cost(at)
// of the time while its library is observed. It returns the share of the time
// that was observed, and the part of the thread's time that was paid.
func simulateSchedule(s *schedule, from, d time.Duration, b bounds, cost func(at time.Duration) float64) (observed, paid float64) {
	var open, spent time.Duration
	for at := from + turnInterval; at <= from+d; at += turnInterval {
		now := epoch.Add(at)
		tick := time.Duration(0)
		if s.open {
			open += turnInterval
			tick = time.Duration(cost(at) * float64(turnInterval))
		}
		spent += tick
		switch s.turn(now, tick, false, b) {
		case moveClose:
			s.closed(now)
		case moveOpen:
			s.opened(now)
		}
	}
	return float64(open) / float64(d), float64(spent) / float64(d)
}

func always(share float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return share }
}

func TestGovernorHoldsTheBound(t *testing.T) {
	for _, c := range []struct {
		name     string
		bounds   bounds
		cost     float64
		observed float64 // expected share
	}{
		{"cheap", bounds{threadRatio: 0.1, share: 1}, 0.07, 1},
		{"a busy poller at entry and return", bounds{threadRatio: 0.1, share: 1}, 1, 0.1},
		{"a little over", bounds{threadRatio: 0.1, share: 1}, 0.2, 0.5},
		{"a small bound", bounds{threadRatio: 0.001, share: 1}, 1, 0.001},
		{"no bound", bounds{share: 1}, 1, 1},
		{"the tracer itself costs too much", bounds{threadRatio: 0.1, share: 0.25}, 0.01, 0.25},
		{"both", bounds{threadRatio: 0.1, share: 0.5}, 1, 0.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSchedule(epoch)
			observed, paid := simulateSchedule(&s, 0, 20*time.Minute, c.bounds, always(c.cost))
			if math.Abs(observed-c.observed) > 0.15*c.observed+0.001 {
				t.Errorf("observed %.4f of the time, want %.4f", observed, c.observed)
			}
			// The window that is open when the time ends has not been made up for.
			if c.bounds.threadRatio > 0 && paid > c.bounds.threadRatio*1.02+0.0005 {
				t.Errorf("a thread paid %.4f, the bound is %.4f", paid, c.bounds.threadRatio)
			}
		})
	}
}

// Cost at the bound does not make the schedule flap, calm makes it end.
func TestGovernorHysteresis(t *testing.T) {
	b := bounds{threadRatio: 0.1, share: 1}
	s := newSchedule(epoch)
	changes, governed := 0, false
	at := time.Duration(0)
	phase := func(d time.Duration, cost func(time.Duration) float64) {
		for range int(d / time.Second) {
			simulateSchedule(&s, at, time.Second, b, cost)
			at += time.Second
			if s.governed != governed {
				changes++
				governed = s.governed
			}
		}
	}
	phase(time.Minute, always(0.5))
	if !governed {
		t.Fatal("over the bound, but not in windows")
	}
	// Around the bound: in windows or not, but not now this, now that.
	phase(10*time.Minute, func(at time.Duration) float64 { return 0.095 + 0.02*math.Sin(at.Seconds()) })
	if changes > 1 {
		t.Errorf("%d changes around the bound", changes)
	}
	phase(time.Minute, always(0.01))
	if governed || !s.open {
		t.Error("calm, but still in windows")
	}
}

func TestExpensiveWindowEndsEarly(t *testing.T) {
	s := newSchedule(epoch)
	b := bounds{threadRatio: 0.1, share: 1}
	if got := s.turn(epoch.Add(turnInterval), turnInterval, false, b); got != moveClose {
		t.Fatalf("move %d after 200 ms that cost 200 ms", got)
	}
	s.closed(epoch.Add(turnInterval))
	want := epoch.Add(turnInterval + 9*turnInterval)
	if !s.resume.Equal(want) {
		t.Errorf("resumes after %v, want %v", s.resume.Sub(epoch), want.Sub(epoch))
	}
	// Detaching goes on to cost.
	s.turn(epoch.Add(2*turnInterval), 10*time.Millisecond, false, b)
	if got := s.resume.Sub(want); got != 100*time.Millisecond {
		t.Errorf("the gap grew by %v for 10 ms more", got)
	}
}

func TestObservedShare(t *testing.T) {
	s := newSchedule(epoch)
	s.closed(epoch.Add(time.Second))
	if got, _ := s.takeShares(epoch.Add(4 * time.Second)); got != 0.25 {
		t.Errorf("%v, want 0.25", got)
	}
	if got, _ := s.takeShares(epoch.Add(5 * time.Second)); got != 0 {
		t.Errorf("%v, want 0", got)
	}
	s.opened(epoch.Add(5 * time.Second))
	if got, _ := s.takeShares(epoch.Add(6 * time.Second)); got != 1 {
		t.Errorf("%v, want 1", got)
	}
}

// What was paid counts whatever it was for: in windows, in gaps, and for evidence.
func TestPaidShare(t *testing.T) {
	s := newSchedule(epoch)
	if _, got := s.takeShares(epoch); got != 0 {
		t.Errorf("%v without any time, want 0", got)
	}
	b := bounds{threadRatio: 0.1, share: 1}
	s.turn(epoch.Add(turnInterval), 40*time.Millisecond, false, b)
	s.turn(epoch.Add(2*turnInterval), 50*time.Millisecond, true, b)
	s.closed(epoch.Add(2 * turnInterval))
	s.turn(epoch.Add(3*turnInterval), 10*time.Millisecond, false, b)
	if _, got := s.takeShares(epoch.Add(time.Second)); got != 0.1 {
		t.Errorf("%v of a second in which 100 ms were paid, want 0.1", got)
	}
	if _, got := s.takeShares(epoch.Add(2 * time.Second)); got != 0 {
		t.Errorf("%v, want 0: it was taken", got)
	}
}

// A comparison is covered for a second of cost, and after that only as far as
// the credit has grown back.
func TestVerificationCredit(t *testing.T) {
	b := bounds{threadRatio: 0.1, share: 1}
	c := credit{left: verification}
	covered := 0
	for c.covers(true, turnInterval, turnInterval, b) {
		covered++
	}
	if want := int(verification / turnInterval); covered != want {
		t.Errorf("%d turns covered, want %d", covered, want)
	}
	c.covers(false, 0, time.Minute, b)
	if c.left != verification {
		t.Errorf("a minute gives %v back, want all of %v", c.left, verification)
	}
}

func TestAgentShare(t *testing.T) {
	const cores = 0.05
	a := newAgentShare(epoch, agentSpent{})
	now, spent := epoch, time.Duration(0)
	work := func(used float64) {
		now = now.Add(agentInterval)
		spent += time.Duration(used * float64(agentInterval))
		a.turn(now, agentSpent{running: spent}, cores)
	}
	// What it uses is in proportion to the share.
	for range 5 {
		work(0.2 * a.share)
	}
	if a.share != 0.25 {
		t.Errorf("share %v, want 0.25", a.share)
	}
	// Never less than what would tell nothing.
	for range 20 {
		work(1)
	}
	if a.share != smallestShare {
		t.Errorf("share %v, want %v", a.share, smallestShare)
	}
	for range calmWindows * 20 {
		work(0)
	}
	if a.share != 1 {
		t.Errorf("share %v after calm, want 1", a.share)
	}
	if a.turn(now.Add(agentInterval), agentSpent{running: spent + time.Hour}, 0) {
		t.Error("changed without a bound")
	}
}

// Programs that are loaded under way are paid for, in time, and do not make libraries
// be observed less.
func TestLoadingIsPaidInTime(t *testing.T) {
	const cores = 0.05
	start := agentSpent{running: time.Second, loading: 3 * time.Second}
	a := newAgentShare(epoch, start)
	spent := start
	spent.loading += 2 * time.Second
	for i := range 100 {
		spent.running += time.Duration(0.6 * cores * float64(agentInterval))
		a.turn(epoch.Add(time.Duration(i+1)*agentInterval), spent, cores)
		if a.share != 1 {
			t.Fatalf("the share is %v after %d intervals", a.share, i+1)
		}
		paid := a.paid.loading - start.loading
		if most := time.Duration(float64(i+1) * loadingPart * cores * float64(agentInterval)); paid > most {
			t.Fatalf("%v are paid after %d intervals, more than %v", paid, i+1, most)
		}
	}
	if a.paid != spent {
		t.Errorf("%+v is paid of %+v", a.paid, spent)
	}
	// Who is at the bound without it pays with the share.
	spent.loading += time.Second
	spent.running += time.Duration(cores * float64(agentInterval))
	if !a.turn(epoch.Add(101*agentInterval), spent, cores) || a.share >= 1 {
		t.Errorf("the share is %v", a.share)
	}
}
