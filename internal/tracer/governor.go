package tracer

import "time"

// What being observed costs a traced thread is the hits on its probes, each at
// the price that was measured at the start, and what the programs do beyond that.
// What it costs the node besides is the CPU time of the tracer's own goroutines.
// Both are bounded, and fall only by detaching: a library that is over the bound
// is observed in windows, all of its functions together.

const (
	// turnInterval is how often costs are looked at and modes change.
	turnInterval = 200 * time.Millisecond
	// turnSlack is how much earlier than planned a turn may come and still be
	// the one that was meant.
	turnSlack = turnInterval / 4
	// assessTime is over how long a library's cost is averaged while it is
	// observed all the time.
	assessTime = time.Second
	// shortestWindow is the least time for which a library is observed: queues
	// begin unsynced, and attaching has its price too. shortestGap is the least
	// between.
	shortestWindow = 200 * time.Millisecond
	shortestGap    = 200 * time.Millisecond
	// windowPeriod is the time from window to window that is aimed at. A share
	// so small that a window would be shorter than the shortest takes longer.
	windowPeriod = 2 * time.Second
	// calmPart of the bound is what a library has to stay below, for calmWindows
	// windows in a row, to be observed all the time again.
	calmPart    = 0.7
	calmWindows = 3
)

// bounds are what the governor holds.
type bounds struct {
	// threadRatio is the part of a thread's time that probes may take, 0: any.
	threadRatio float64
	// share is the most of the time that a library may be observed, such that
	// the tracer itself stays within its bound; 1: all.
	share float64
}

// gap is how long a library must not be observed after it was for so long and
// cost the busiest thread so much; 0 or less when it need not pause.
func (b bounds) gap(spent, length time.Duration) time.Duration {
	gap := time.Duration(float64(length) * (1/b.share - 1))
	if b.threadRatio > 0 {
		gap = max(gap, time.Duration(float64(spent)/b.threadRatio)-length)
	}
	return gap
}

// spends reports whether so much is already more than a thread may pay in such a
// length of time.
func (b bounds) spends(spent, length time.Duration) bool {
	return b.threadRatio > 0 && float64(spent) > b.threadRatio*float64(length)
}

// verification is what the comparison of completion sites with entry and return
// may cost the busiest thread beyond the bounds: a second of traps, once in a
// while, spares the library a gap, after which its queues would be unsynced.
const verification = time.Second

// credit is what is left of that.
type credit struct{ left time.Duration }

// covers takes the cost of a comparison from the credit, and reports whether it
// sufficed. Without a comparison it grows back by part of the thread's budget.
func (c *credit) covers(comparing bool, spent, elapsed time.Duration, b bounds) bool {
	if !comparing {
		c.left = min(c.left+time.Duration(float64(elapsed)*b.threadRatio*evidencePart), verification)
		return false
	}
	covered := c.left >= spent
	c.left = max(c.left-spent, 0)
	return covered
}

// schedule decides when one library is observed. It touches no probe.
type schedule struct {
	// open says whether it is observed, governed whether in windows.
	open, governed bool
	since          time.Time     // the present window or gap began
	window         time.Duration // how long the next window is
	spent          time.Duration // by the busiest thread since then
	resume         time.Time     // when the gap ends
	calm           int
	// seen is the time of the last turn; observed of total time was observed, and
	// paid by the busiest thread of each turn, since the shares were last asked for.
	seen                  time.Time
	observed, total, paid time.Duration
}

// move is what is to be done with the probes of a library.
type move int

const (
	moveStay move = iota
	moveClose
	moveOpen
)

func newSchedule(now time.Time) schedule {
	return schedule{open: true, since: now, seen: now, window: assessTime}
}

// turn decides anew. spent is what the busiest thread paid since the last turn;
// apart says that it was for evidence or verification, which have budgets of
// their own.
func (s *schedule) turn(now time.Time, spent time.Duration, apart bool, b bounds) move {
	elapsed := now.Sub(s.seen)
	s.account(now)
	s.paid += spent
	switch {
	case !s.open:
		return s.wait(now, spent, b)
	case apart:
		s.since = s.since.Add(elapsed)
		return moveStay
	}
	s.spent += spent
	length := now.Sub(s.since)
	allowed := b
	if !s.governed {
		allowed.threadRatio *= 1 - evidencePart
	}
	if length < s.window-turnSlack && (length < shortestWindow-turnSlack || !allowed.spends(s.spent, s.window)) {
		return moveStay
	}
	if allowed.gap(s.spent, length) <= 0 {
		s.keep(now, length, b)
		return moveStay
	}
	s.pause(now, length, b)
	return moveClose
}

// wait ends a gap in time. Probes cost until the last of them is gone, also
// after the window.
func (s *schedule) wait(now time.Time, spent time.Duration, b bounds) move {
	if b.threadRatio > 0 {
		s.resume = s.resume.Add(time.Duration(float64(spent) / b.threadRatio))
	}
	if now.Add(turnSlack).Before(s.resume) {
		return moveStay
	}
	return moveOpen
}

// keep goes on after a window that was within the bounds.
func (s *schedule) keep(now time.Time, length time.Duration, b bounds) {
	calm := bounds{threadRatio: b.threadRatio * calmPart, share: b.share}
	if calm.gap(s.spent, length) <= 0 {
		s.calm++
	} else {
		s.calm = 0
	}
	if s.calm >= calmWindows {
		s.governed = false
		s.window = assessTime
	}
	s.since, s.spent = now, 0
}

// pause plans the gap after a window that was over the bounds.
func (s *schedule) pause(now time.Time, length time.Duration, b bounds) {
	gap := max(b.gap(s.spent, length), shortestGap)
	share := float64(length) / float64(length+gap)
	s.window = max(shortestWindow, time.Duration(share*float64(windowPeriod)))
	s.resume = now.Add(gap)
	s.governed = true
	s.calm = 0
}

// opened and closed are told when the library is observed from, and until.
func (s *schedule) opened(now time.Time) { s.change(now, true) }
func (s *schedule) closed(now time.Time) { s.change(now, false) }

func (s *schedule) change(now time.Time, open bool) {
	s.account(now)
	s.open, s.since, s.spent = open, now, 0
}

func (s *schedule) account(now time.Time) {
	elapsed := now.Sub(s.seen)
	s.seen = now
	s.total += elapsed
	if s.open {
		s.observed += elapsed
	}
}

// takeShares returns the part of the time since the last call for which the
// library was observed, and the part that no thread paid more of.
func (s *schedule) takeShares(now time.Time) (observed, paid float64) {
	s.account(now)
	defer func() { s.observed, s.total, s.paid = 0, 0, 0 }()
	if s.total <= 0 {
		return float64(asUint32(s.open)), 0
	}
	return float64(s.observed) / float64(s.total), float64(s.paid) / float64(s.total)
}
