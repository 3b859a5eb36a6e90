package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// What a poller did with time of its own is known where its polls are seen: at
// completion sites for moments only. When those are has nothing to do with why a
// request is slow, so that a few requests in them stand for the others.

// enoughSeen is how many requests of which something is known stand for those of
// which it is not.
const enoughSeen = 3

// watched reports whether the polls of the request's poller were seen. At completion
// sites, a poll stage without the return of the post is known from an absence.
func watched(c *verbs.Completion) bool {
	return c.HasElsewhere || c.Known.Has(verbs.StagePoll) && c.Known.Has(verbs.StageDevice)
}

// free is the part of the poll stage in which nothing of that kind kept the poller
// from polling.
func free(other kind) func(*verbs.Completion) time.Duration {
	return func(c *verbs.Completion) time.Duration {
		return c.Stages[verbs.StagePoll] - other(&c.PollerScheduling)
	}
}

// elsewhere is the part of the poll stage in which the poller was on its CPU and
// polled other Completion Queues, busy that in which it polled none.
func elsewhere(c *verbs.Completion) time.Duration {
	return max(min(c.Elsewhere, free(away)(c)), 0)
}

func busy(c *verbs.Completion) time.Duration { return free(away)(c) - elsewhere(c) }

// ownLateness measures a part of the time that the poller had for itself since it
// last looked in vain; nothing where an absence may be unknown. Where enough
// requests were watched, of the others it counts as large a part of the time in
// which the poller was there.
func (b *Burst) ownLateness(of func(*verbs.Completion) time.Duration) lateness {
	part, n := b.seenPart(of, func(c *verbs.Completion) bool {
		return watched(c) && c.HasPollerScheduling && c.PollerScheduling.Whole
	})
	return b.measureBy(part, n, func(c *verbs.Completion) (time.Duration, bool) {
		switch {
		case !c.HasPollerScheduling || !c.PollerScheduling.Whole:
			return 0, true
		case c.Known.Has(verbs.StagePoll):
			return of(c), true
		}
		return 0, false
	})
}

// measureBy measures what is known of requests, and of the others the same part of the
// time in which their poller was on its CPU as of n that were watched.
func (b *Burst) measureBy(part float64, n int, known func(*verbs.Completion) (time.Duration, bool)) lateness {
	estimated := false
	l := b.measure(func(c *verbs.Completion) time.Duration {
		if took, ok := known(c); ok {
			return took
		}
		took := time.Duration(part * float64(c.Excess()-away(&c.PollerScheduling)))
		estimated = estimated || took > 0
		return took
	})
	if estimated {
		l.Watched = n
	}
	return l
}

// seenPart is the part of the time, of the requests of which it was seen and for
// which the poller was on its CPU; 0 when those were too few. n is how many.
func (b *Burst) seenPart(of func(*verbs.Completion) time.Duration, seen func(*verbs.Completion) bool) (part float64, n int) {
	var took, all time.Duration
	for i := range b.Slow {
		c := &b.Slow[i]
		if c.Status != verbs.StatusSuccess || !seen(c) {
			continue
		}
		n++
		there := max(c.Excess()-away(&c.PollerScheduling), 0)
		took, all = took+min(max(of(c), 0), there), all+there
	}
	if n < enoughSeen {
		return 0, n
	}
	return ratio(took, all), n
}

// knowsElsewhere reports whether it was seen of a request whether its poller polled
// other Completion Queues.
func (b *Burst) knowsElsewhere() bool {
	for i := range b.Slow {
		if b.Slow[i].HasElsewhere {
			return true
		}
	}
	return false
}

// weighWatched notes that the polls of some requests stand for those of all.
func (o *opinion) weighWatched(l lateness) {
	if l.Watched > 0 {
		o.supports("polls.watched", "that was seen of the %d requests whose polls were watched", l.Watched)
		o.misses(Likely, missingLook)
	}
}
