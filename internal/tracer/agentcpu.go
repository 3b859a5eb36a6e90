package tracer

import "time"

const (
	// agentInterval is over how long the tracer's own CPU time is averaged.
	agentInterval = 10 * time.Second
	// smallestShare is the least that the tracer's own cost makes of the time in
	// which libraries are observed: what it costs beyond is not theirs.
	smallestShare = 1.0 / 64
	// agentRecovery is how fast the share grows again when there is room.
	agentRecovery = 1.5
)

// agentShare decides for how much of the time libraries may be observed so that
// the tracer itself stays within its bound.
type agentShare struct {
	share float64
	since time.Time
	base  time.Duration
	calm  int
}

func newAgentShare(now time.Time, spent time.Duration) agentShare {
	return agentShare{share: 1, since: now, base: spent}
}

// turn takes the CPU time that the tracer has used so far, and reports whether
// the share is another one now. cores is the bound, 0: none.
func (a *agentShare) turn(now time.Time, spent time.Duration, cores float64) (changed bool) {
	elapsed := now.Sub(a.since)
	if cores <= 0 || elapsed < agentInterval {
		return false
	}
	used := float64(spent-a.base) / float64(elapsed)
	a.since, a.base = now, spent
	before := a.share
	switch {
	case used > cores:
		a.calm = 0
		a.share = max(a.share*cores/used, smallestShare)
	case used > calmPart*cores:
		a.calm = 0
	default:
		a.calm++
	}
	if a.calm >= calmWindows {
		a.calm = 0
		a.share = min(a.share*agentRecovery, 1)
	}
	return a.share != before
}
