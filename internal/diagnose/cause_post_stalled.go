package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func postStalledCause() Cause {
	return Cause{
		Name:    "post_stalled",
		Title:   "post stalled",
		Happens: "The call of post_send itself took long: it waited for a lock, its write to the doorbell of the device stalled, or the posting thread lost its CPU inside of it.",
		Needs:   "when posts return, which is known where their returns are probed: in the first moments of a library, for 200 ms when something begins to be slow, and for as long every 10 s",
		For: []string{
			"Most of the excess time passed between the entry of post_send and its return.",
			"The posting thread wanted a CPU and had none as long, or it was on its CPU: then it is a lock or the doorbell.",
		},
		Against: []string{
			"The posting thread was stopped, or kept off its CPU by a quota: see poller_stopped and poller_throttled.",
			"The completion came before the post returned: it was no later for that.",
		},
		CannotTell:   "a lock from a doorbell that stalls on PCIe.",
		Confirm:      "`perf trace -s -t TID` shows no long system call, `perf record -g -t TID` whether it spins in pthread_spin_lock or stands at the doorbell's write.",
		Remedy:       "Give each posting thread queue pairs of its own, with a thread domain (ibv_alloc_td) where the locks are of the provider; a doorbell that stalls is PCIe's.",
		Source:       []string{"https://manpages.debian.org/trixie/libibverbs-dev/ibv_alloc_td.3.en.html", "https://github.com/linux-rdma/rdma-core/pull/1626"},
		Proven:       Executed,
		Consequences: []string{"send_queue_full", "send_queue_backlog"},
		PerProcess:   true,
		judge:        judgePostStalled,
	}
}

func judgePostStalled(b *Burst) Judgement {
	l := b.postLateness()
	o := gradedBy(l)
	if o.Confidence == None {
		return b.lackingReturn()
	}
	o.supports("stage.post", "%s of the excess time passed inside of post_send, up to %s of a request", percent(l.Explains()), short(l.Longest))
	if l.Watched > 0 {
		o.supports("posts.watched", "that was seen of the %d requests whose posts were seen to return", l.Watched)
		o.misses(Likely, "when the other posts returned")
	}
	o.weighPoster(b, l)
	return o.Judgement
}

// postLateness measures the time inside of posts. Where those that were seen to
// return do not account for it, and are enough, they stand for the others: of these
// it counts as large a part of the time in which the poller was there.
func (b *Burst) postLateness() lateness {
	if l := b.measure(posting); l.grade() >= Likely {
		return l
	}
	returned := func(c *verbs.Completion) bool { return c.Known.Has(verbs.StagePost) }
	part, n := b.seenPart(posting, returned)
	return b.measureBy(part, n, func(c *verbs.Completion) (time.Duration, bool) {
		switch {
		case returned(c):
			return posting(c), true
		case !c.HasPollerScheduling || !c.PollerScheduling.Whole:
			return 0, true
		}
		return 0, false
	})
}

// posting is the time inside of the post. Where another thread took the completion
// before the post returned, the post did not make it late.
func posting(c *verbs.Completion) time.Duration {
	if c.Poster.TID != c.Poller.TID && c.Stages[verbs.StagePost] >= c.Duration() {
		return 0
	}
	return c.Stages[verbs.StagePost]
}

// weighPoster says what the posting thread did meanwhile, as far as it is known.
func (o *opinion) weighPoster(b *Burst, l lateness) {
	var waited, held time.Duration
	known := true
	for i := range b.Slow {
		c := &b.Slow[i]
		known = known && c.HasPosterScheduling
		if c.HasPosterScheduling {
			waited += min(c.PosterScheduling.Runnable, posting(c))
			held += min(c.PosterScheduling.Stopped, posting(c))
		}
	}
	if part := ratio(held, l.Time); part >= aPart {
		ceiling := Likely
		if part >= half {
			ceiling = Possible
		}
		o.opposes(ceiling, "poster.stopped", "the posting thread was stopped for %s of it", percent(part))
	}
	switch part := ratio(waited, l.Time); {
	case !known:
		o.misses(Likely, "what the kernel did with the posting thread meanwhile")
	case part < aPart && ratio(held, l.Time) < aPart:
		o.supports("poster.runnable", "the posting thread was not preempted: it waited for a lock or for the doorbell")
	case part >= half:
		o.weighPreempted(b, l, part)
	}
}

// weighPreempted notes for how much of it the posting thread had no CPU, and whether that
// was because of a quota.
func (o *opinion) weighPreempted(b *Burst, l lateness, part float64) {
	switch {
	case b.Throttling == nil:
		o.misses(Possible, missingThrottling)
	case b.throttles(l) >= aPart:
		o.opposes(Possible, "cgroup.throttled", "the CPU quota of the poller's cgroup took %s away", short(b.Throttling.Time))
	default:
		o.supports("poster.runnable", "the posting thread wanted a CPU and had none for %s of it", percent(part))
		o.Remedy = "Give the posting thread a CPU of its own: it lost its CPU inside of post_send."
	}
}

// lackingReturn is the judgement where posts were not seen to return. Their end is
// then a part of what follows, and no cause of most of that.
func (b *Burst) lackingReturn() Judgement {
	if b.Share(verbs.StageSubmit, verbs.StageCompletion) < half {
		return Judgement{}
	}
	return lacking("when the posts returned")
}
