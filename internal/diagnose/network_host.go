package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Parts of the time at which the host's own threads do, or do not, explain it.
const (
	mostly = 0.7
	hardly = 0.3
)

// hostTime is where the time of a burst passed that was not spent behind earlier
// work of the same queue: that is late for the reason that the earlier work was.
type hostTime struct {
	// outside is the part in which the poller looked and the completion was not
	// there: the device, the fabric or the peer was late. It means something when
	// known, which it is not where hardly any time is left besides that behind
	// earlier work.
	outside float64
	known   bool
	// absent is the part of what the requests were late by that the poller was
	// not on a CPU for; it means something when scheduled.
	absent    float64
	scheduled bool
}

func (w *waits) hostTime() hostTime {
	var outside, own, all, absent, late time.Duration
	h := hostTime{known: len(w.requests) > 0, scheduled: len(w.requests) > 0}
	for _, r := range w.requests {
		h.known = h.known && r.Known.Has(verbs.StagePoll)
		h.scheduled = h.scheduled && r.HasPollerScheduling && r.PollerScheduling.Whole
		outside += r.Stages[verbs.StageDevice] + r.Stages[verbs.StageCompletion]
		own += r.Duration() - behind(r)
		all += r.Duration()
		absent += absence(r)
		late += r.Excess()
	}
	h.known = h.known && ratio(own, all) >= 0.1
	h.outside, h.absent = ratio(outside, own), ratio(absent, late)
	return h
}

// absence is how long the poller was away. A thread that polls and finds nothing
// may sleep until it is told: then its sleep says nothing.
func absence(r *verbs.Completion) time.Duration {
	away := r.PollerScheduling.Runnable + r.PollerScheduling.Stopped
	if !r.Known.Has(verbs.StagePoll) {
		away += r.PollerScheduling.Asleep
	}
	return away
}

// saved reports whether the poller's absence does not matter, as it was seen that
// nothing had come before it.
func (h *hostTime) saved() bool { return h.known && h.outside >= mostly }
