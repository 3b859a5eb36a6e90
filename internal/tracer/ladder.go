package tracer

import (
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// pollMode is how the completions of one poll_cq are observed: the rungs of the
// ladder site, windows, off, and the comparison that leads to the first.
type pollMode string

const (
	// modeSite: probes on completion sites alone. An empty poll costs nothing.
	modeSite pollMode = "site"
	// modeComparing: entry and return deliver, and the completion sites are
	// compared with them, on live traffic.
	modeComparing pollMode = "comparing"
	// modeWindows: probes on entry and return, which trap on every poll, also
	// on an empty one; for as large a share of the time as the bounds on cost
	// allow.
	modeWindows pollMode = "windows"
	// modeOff: nothing of the library is observed.
	modeOff pollMode = "off"
)

const (
	// comparedEnough is how many completions and how many empty polls have to
	// agree before the sites are trusted.
	comparedEnough = 64
	// mostFailures is how often sites may turn out wrong, or probes fail to
	// attach, before they are given up; after forgivenAfter without one it
	// counts from zero.
	mostFailures  = 3
	forgivenAfter = 10 * time.Minute
	// leavingTime bounds how long calls whose return delivers are waited for:
	// a poll does not wait, but a thread may end inside of one.
	leavingTime = 5 * time.Second
)

// ladderStep is what is to be done with the probes of a poll_cq.
type ladderStep int

const (
	// stepStay changes nothing.
	stepStay ladderStep = iota
	// stepCompare probes entry and return beside the sites.
	stepCompare
	// stepTrust lets the sites deliver the calls that begin from now on.
	stepTrust
	// stepLeave takes entry and return off.
	stepLeave
	// stepRefute takes the sites off: they were seen to be wrong.
	stepRefute
	// stepGiveUp takes the sites off, without a proof that they are wrong.
	stepGiveUp
)

// ladder decides how the completions of one poll_cq are observed. It touches no
// probe.
type ladder struct {
	mode pollMode
	// leaving: the sites are trusted, entry and return are still there.
	leaving  bool
	since    time.Time
	base     bpf.TrackerPollFunction // when the comparison began
	failures int
	failed   time.Time
	// suspicions is the library's count of them that was acted on.
	suspicions uint64
}

// sighting is what the ladder decides by.
type sighting struct {
	now time.Time
	// function is what the kernel side counted; suspicions are completions
	// that did not add up on aligned queues of the library.
	function   bpf.TrackerPollFunction
	suspicions uint64
}

// newLadder begins with a comparison, where that was done before on the rung
// above, and where there are no usable sites on the rung below.
func newLadder(now time.Time, hasSites bool, known provider.Verdict) ladder {
	l := ladder{mode: modeWindows, since: now}
	switch {
	case hasSites && known == provider.Verified:
		l.mode = modeSite
	case hasSites:
		l.mode = modeComparing
	}
	return l
}

// next says what is to be done, and why where an operator should know.
func (l *ladder) next(s sighting) (step ladderStep, why string) {
	switch {
	case l.mode == modeComparing && l.leaving:
		return l.leave(s), ""
	case l.mode == modeComparing:
		return l.judge(s)
	case l.mode == modeSite:
		return l.guard(s)
	default:
		return stepStay, ""
	}
}

// judge looks at what the comparison found.
func (l *ladder) judge(s sighting) (ladderStep, string) {
	if s.function.WrongCount != l.base.WrongCount || s.function.WrongContent != l.base.WrongContent {
		return stepRefute, "its completion sites disagree with what it returns"
	}
	if s.function.Completions-l.base.Completions < comparedEnough || s.function.EmptyPolls-l.base.EmptyPolls < comparedEnough {
		return stepStay, ""
	}
	if l.failures > mostFailures {
		return stepGiveUp, "completions did not add up again and again"
	}
	l.leaving = true
	l.since = s.now
	return stepTrust, ""
}

// leave waits for the calls whose return delivers.
func (l *ladder) leave(s sighting) ladderStep {
	if s.function.Inside != 0 && s.now.Sub(l.since) < leavingTime {
		return stepStay
	}
	l.enter(modeSite, s.now)
	l.suspicions = s.suspicions
	return stepLeave
}

// guard watches for what cannot be when every completion is seen: then the
// sites are compared once more.
func (l *ladder) guard(s sighting) (ladderStep, string) {
	if s.suspicions == l.suspicions {
		return stepStay, ""
	}
	l.suspicions = s.suspicions
	if s.now.Sub(l.failed) > forgivenAfter {
		l.failures = 0
	}
	l.failures++
	l.failed = s.now
	l.compare(s)
	return stepCompare, "a completion did not add up, comparing completion sites with entry and return"
}

// compare begins a comparison.
func (l *ladder) compare(s sighting) {
	l.enter(modeComparing, s.now)
	l.base = s.function
}

// resume goes on after the library was not observed for a while. What was
// counted of calls that were cut off is not held against the sites.
func (l *ladder) resume(s sighting) {
	if l.mode == modeComparing && l.leaving {
		l.enter(modeSite, s.now)
	}
	l.suspicions = s.suspicions
}

func (l *ladder) enter(mode pollMode, now time.Time) {
	l.mode, l.leaving, l.since = mode, false, now
}
