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
	// loadingPart is the part of the bound that pays for programs that were loaded.
	// A driver or the extended verbs bring some once, a second or two of the kernel's
	// time: to observe less would not make them cheaper.
	loadingPart = 0.2
)

// agentSpent is the CPU time that the tracer has used so far: for its own goroutines,
// and for the kernel to verify programs.
type agentSpent struct{ running, loading time.Duration }

// spent is what the tracer has used so far.
func (t *Tracer) spent() agentSpent {
	return agentSpent{running: t.meter.total(), loading: t.side.loading.total()}
}

// agentShare decides for how much of the time libraries may be observed so that
// the tracer itself stays within its bound.
type agentShare struct {
	share float64
	since time.Time
	// paid is what has been charged of what was spent.
	paid agentSpent
	calm int
}

func newAgentShare(now time.Time, spent agentSpent) agentShare {
	return agentShare{share: 1, since: now, paid: spent}
}

// turn takes what the tracer has used so far, and reports whether the share is another
// one now. cores is the bound, 0: none.
func (a *agentShare) turn(now time.Time, spent agentSpent, cores float64) (changed bool) {
	elapsed := now.Sub(a.since)
	if cores <= 0 || elapsed < agentInterval {
		return false
	}
	used := float64(a.charge(spent, time.Duration(loadingPart*cores*float64(elapsed)))) / float64(elapsed)
	a.since = now
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

// charge is what has to be paid now: all that running took, and at most so much of what
// loading did, the rest later.
func (a *agentShare) charge(spent agentSpent, mostLoading time.Duration) time.Duration {
	running, loading := spent.running-a.paid.running, min(spent.loading-a.paid.loading, mostLoading)
	a.paid.running += running
	a.paid.loading += loading
	return running + loading
}
