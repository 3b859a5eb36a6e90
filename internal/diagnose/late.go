package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// A kind is one way for a thread not to poll: which part of an interval it was so.
type kind func(*verbs.Scheduling) time.Duration

func runnable(s *verbs.Scheduling) time.Duration    { return s.Runnable }
func asleep(s *verbs.Scheduling) time.Duration      { return s.Asleep }
func stopped(s *verbs.Scheduling) time.Duration     { return s.Stopped }
func interrupted(s *verbs.Scheduling) time.Duration { return s.Interrupted }

// away is how long a thread was kept from polling by anything but its own code.
func away(s *verbs.Scheduling) time.Duration {
	return s.Runnable + s.Asleep + s.Stopped + s.Interrupted
}

// awayFromCode is away but for sleep, in which a thread may be held up in the
// kernel by what its own code asked for.
func awayFromCode(s *verbs.Scheduling) time.Duration {
	return s.Runnable + s.Stopped + s.Interrupted
}

// chance is the part of an absence within which a completion arrives after it by
// chance. What arrives sooner after the thread is back has most likely waited for
// it. The kernel side judges by the same (bpf/sched.h).
const chance = 16

// lateness is how much of the time of a burst one mechanism accounts for. Failed
// requests are in Excess alone: they did not fail because somebody polled late.
type lateness struct {
	// Excess is that of the burst, Time the part that the mechanism accounts for.
	Excess, Time time.Duration
	// Requests counts those that were slow. Of Touched the mechanism accounts for
	// something, of Spared for so much that the rest is within the threshold, or
	// hardly worth mention beside it.
	Requests, Spared, Touched int
	// Total is what the mechanism took of the thread's time, where requests that
	// waited at the same time count once, Episodes is how often, Longest the most
	// that it took of one request.
	Total, Longest time.Duration
	Episodes       int
	// Inferred is true when of some request it is not known when the thread last
	// looked in vain, and that it was late follows from when it came back.
	Inferred bool
	// Watched counts the requests whose polls were seen, where those stand for
	// others too; else it is 0.
	Watched int
}

// measure sums over a burst what a mechanism took of each request.
func (b *Burst) measure(of func(*verbs.Completion) time.Duration) lateness {
	l := lateness{Excess: b.Excess(), Requests: len(b.Slow)}
	var episodes episodes
	for i := range b.Slow {
		c := &b.Slow[i]
		if c.Status != verbs.StatusSuccess {
			continue
		}
		took := min(max(of(c), 0), c.Excess())
		if took == 0 {
			continue
		}
		l.Time += took
		l.Touched++
		l.Longest = max(l.Longest, took)
		if rest := c.Excess() - took; rest <= max(c.Threshold, took/chance) {
			l.Spared++
		}
		episodes.add(c, took)
	}
	l.Total, l.Episodes = episodes.total()
	return l
}

// Explains is the part of the excess that the mechanism accounts for.
func (l lateness) Explains() float64 { return ratio(l.Time, l.Excess) }

// Mean is what it took of a request that it touched.
func (l lateness) Mean() time.Duration {
	return l.Time / time.Duration(max(l.Touched, 1))
}

// episodes are spans of requests that waited at the same time.
type episodes []episode

type episode struct {
	start, end uint64
	took       time.Duration
}

func (e *episodes) add(c *verbs.Completion, took time.Duration) {
	*e = append(*e, episode{c.Posted, c.Delivered, took})
}

// total joins those that overlap: of these the longest counts.
func (e *episodes) total() (sum time.Duration, count int) {
	slices.SortFunc(*e, func(x, y episode) int { return cmp.Compare(x.start, y.start) })
	var end uint64
	var longest time.Duration
	for _, one := range *e {
		if count == 0 || one.start >= end {
			sum, longest, count = sum+longest, 0, count+1
		}
		longest, end = max(longest, one.took), max(end, one.end)
	}
	return sum + longest, count
}

// pollLateness measures what kept the poller from polling: at most the poll stage,
// where the poller is known to have looked in vain. Where it is not known when it
// last looked, an absence counts that makes up the request but for a sixteenth.
func (b *Burst) pollLateness(of kind) lateness {
	return b.absences(of, func(c *verbs.Completion) (time.Duration, bool) {
		return c.Stages[verbs.StagePoll], c.Known.Has(verbs.StagePoll)
	})
}

// offLateness measures what kept the poller from running. Where it is not known when the
// post returned, it may have been away in it, before the device knew of the request,
// though it looked in vain afterwards.
func (b *Burst) offLateness(of kind) lateness {
	return b.absences(of, func(c *verbs.Completion) (time.Duration, bool) {
		return c.Stages[verbs.StagePoll], c.Known.Has(verbs.StagePoll) && !inUnknownPost(c)
	})
}

// threadLateness is offLateness for what is the same thing while the poller posts.
func (b *Burst) threadLateness(of kind) lateness {
	return b.absences(of, func(c *verbs.Completion) (time.Duration, bool) {
		known := c.Known.Has(verbs.StagePoll) && !inUnknownPost(c)
		if c.Poster.TID != c.Poller.TID {
			return c.Stages[verbs.StagePoll], known
		}
		return c.Stages[verbs.StagePost] + c.Stages[verbs.StagePoll], known
	})
}

// inUnknownPost reports whether the poller may have been in the post of a request for
// longer than is known.
func inUnknownPost(c *verbs.Completion) bool {
	return c.Poster.TID == c.Poller.TID && !c.Known.Has(verbs.StagePost)
}

// absences measures how long the poller was away, within the time that the mechanism may
// have taken, where that is known.
func (b *Burst) absences(of kind, within func(*verbs.Completion) (most time.Duration, known bool)) lateness {
	guessed := false
	l := b.measure(func(c *verbs.Completion) time.Duration {
		if !c.HasPollerScheduling {
			return 0
		}
		took := of(&c.PollerScheduling)
		most, known := within(c)
		if known || took <= most+most/chance {
			return min(took, most)
		}
		whole := min(took, c.PollerScheduling.Longest)
		if whole < chance*(c.Excess()-whole) {
			return min(took, most)
		}
		guessed = true
		return whole
	})
	l.Inferred = guessed
	return l
}

// lookedLateness is pollLateness of those requests alone of which it is known when
// the poller last looked in vain.
func (b *Burst) lookedLateness(of kind) lateness {
	return b.measure(func(c *verbs.Completion) time.Duration {
		if !c.HasPollerScheduling || !c.Known.Has(verbs.StagePoll) {
			return 0
		}
		return min(of(&c.PollerScheduling), c.Stages[verbs.StagePoll])
	})
}

// sleeping is how long the poller of a request slept, whatever for.
func sleeping(c *verbs.Completion) time.Duration {
	if !c.HasPollerScheduling {
		return 0
	}
	return c.PollerScheduling.Asleep
}

// unlookedOnCPU is how long the poller of a request was on its CPU, where it was not
// seen whether it polled.
func unlookedOnCPU(c *verbs.Completion) time.Duration {
	if !c.HasPollerScheduling || c.Known.Has(verbs.StagePoll) {
		return 0
	}
	return c.Excess() - away(&c.PollerScheduling)
}

// scheduled reports whether it is known of all requests what the kernel did with
// their poller, and of which there must be one.
func (b *Burst) scheduled() bool {
	for i := range b.Slow {
		if !b.Slow[i].HasPollerScheduling {
			return false
		}
	}
	return len(b.Slow) > 0
}

// looked reports whether it is known of all requests when the poller last looked
// in vain.
func (b *Burst) looked() bool { return b.Knows(verbs.StagePoll) }

// unscheduled is the judgement of a cause that needs to know what the kernel did
// with the poller. Of a burst without completions there is nothing to know.
func (b *Burst) unscheduled() Judgement {
	if len(b.Slow) == 0 {
		return Judgement{}
	}
	return lacking(missingScheduling)
}
