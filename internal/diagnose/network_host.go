package diagnose

import (
	"slices"
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
	// known is false where hardly any time is left besides that behind earlier
	// work; the parts mean nothing then.
	known bool
	// outside is the part in which the poller looked and the completion was not
	// there: the device, the fabric or the peer was late. late is the part in which
	// the host was. What remains is known of neither.
	outside, late float64
	// seen counts the requests of which it is known, and seenOutside is the part of
	// their time that was outside.
	seen        int
	seenOutside float64
	// watched counts the requests whose polls were seen, and watchedLate is the part
	// of their time in which the host was late: a fair choice.
	watched     int
	watchedLate float64
	// told is the part in which the poller slept until it would be told, where it is
	// not known of the requests when it looked.
	told float64
	// absent is the part of what the requests were late by that the poller was
	// not on a CPU for; it means something when scheduled.
	absent    float64
	scheduled bool
}

// hostTime divides it. awaits is true of a poller that was seen to sleep until something
// happens.
func (w *waits) hostTime(awaits bool) hostTime {
	atSites := w.atSites()
	h := hostTime{scheduled: len(w.requests) > 0}
	var outside, late, told, seen, own, all, absent, excess, watchedLate, watchedOwn time.Duration
	for _, r := range w.requests {
		alone := r.Duration() - queued(r)
		own, all = own+alone, all+r.Duration()
		late += r.Stages[verbs.StagePost]
		if r.Known.Has(verbs.StagePoll) {
			h.seen++
			seen += alone
			outside += r.Stages[verbs.StageDevice] + r.Stages[verbs.StageCompletion]
			late += r.Stages[verbs.StagePoll]
		}
		if watched(r) {
			h.watched++
			watchedLate += r.Stages[verbs.StagePost] + r.Stages[verbs.StagePoll]
			watchedOwn += alone
		}
		h.scheduled = h.scheduled && r.HasPollerScheduling && r.PollerScheduling.Whole
		told += awaited(r, awaits, atSites)
		absent, excess = absent+absence(r, awaits, atSites), excess+r.Excess()
	}
	h.known = ratio(own, all) >= 0.1
	h.outside, h.late, h.seenOutside = ratio(outside, own), ratio(late, own), ratio(outside, seen)
	h.told = ratio(told, own)
	h.watchedLate = ratio(watchedLate, watchedOwn)
	h.absent = ratio(absent, excess)
	return h
}

// absence is how long the poller was away. A thread that polls and finds nothing
// may sleep until it is told: then its sleep says nothing.
func absence(r *verbs.Completion, awaits, atSites bool) time.Duration {
	away := r.PollerScheduling.Runnable + r.PollerScheduling.Stopped
	if !r.Known.Has(verbs.StagePoll) {
		away += r.PollerScheduling.Asleep - awaited(r, awaits, atSites)
	}
	return away
}

// awaited is how long the poller slept until it would be told. Where only completion
// sites are probed, a sleep for a time of its own choice, and one in which it was held
// up, shows as a poll stage when the completion is delivered shortly after it
// (bpf/sched.h). One without was another; or the thread had time to poll after it, and
// the completion came later still. That is no proof of a thread that does something else
// after its sleep.
func awaited(r *verbs.Completion, awaits, atSites bool) time.Duration {
	s := &r.PollerScheduling
	if !r.HasPollerScheduling || r.Known.Has(verbs.StagePoll) {
		return 0
	}
	if !awaits && !(atSites && ratio(s.Longest, r.Duration()) >= mostly) {
		return 0
	}
	return min(s.Asleep, r.Duration()-queued(r))
}

// atSites reports whether only completion sites are probed, but for moments: returns of
// posts are known in these alone.
func (w *waits) atSites() bool {
	return slices.ContainsFunc(w.requests, func(r *verbs.Completion) bool { return r.Known.Has(verbs.StageSubmit) })
}

// waited reports whether nothing had come, or the poller slept until it would be told,
// for most of the time.
func (h *hostTime) waited() bool { return h.known && h.outside+h.told >= mostly }

// looked reports whether it was seen that nothing had come for most of the time.
func (h *hostTime) looked() bool { return h.known && h.outside >= mostly }

// foundLate reports whether enough were watched, and most of their time the host was
// late.
func (h *hostTime) foundLate() bool {
	return h.known && h.watched >= enoughSeen && h.watchedLate >= mostly
}

// lookedAtSome is the same of enough of the requests.
func (h *hostTime) lookedAtSome() bool {
	return h.known && h.seen >= enoughSeen && h.seenOutside >= mostly
}
