package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// queued is how long a request waited behind earlier work of its queue pair.
func queued(c *verbs.Completion) time.Duration {
	return c.Stages[verbs.StageQueue] + c.Stages[verbs.StageSubmit]
}

// queueLateness measures that waiting. It is never of a request at the head, so that
// it says nothing of why the head was slow.
func (b *Burst) queueLateness() lateness { return b.measure(queued) }

// backlogLateness is queueLateness without what was waited for heads that were slow by
// themselves: that has their cause, and what remains is of work that moved on.
func (b *Burst) backlogLateness() lateness {
	heads := b.slowHeads()
	return b.measure(func(c *verbs.Completion) time.Duration {
		waited := queued(c)
		for _, head := range heads {
			waited -= waitedFor(c, head)
		}
		return waited
	})
}

// slowHeads are the requests that were slow by themselves. A head that moves on within
// the threshold is not slow, however many are behind it, nor is one that the port needed
// the time for.
func (b *Burst) slowHeads() (heads []*verbs.Completion) {
	for i := range b.Slow {
		c := &b.Slow[i]
		if lost := ratio(c.Excess(), c.Duration()); lost*float64(alone(c)) > float64(c.Threshold) {
			heads = append(heads, c)
		}
	}
	return heads
}

// alone is how long a request took once nothing was before it.
func alone(c *verbs.Completion) time.Duration { return c.Duration() - queued(c) }

// reached is when nothing was before a request any more.
func reached(c *verbs.Completion) uint64 {
	return c.Posted + uint64(c.Stages[verbs.StagePost]+queued(c))
}

// waitedFor is how long a request waited while that other one was at the head.
func waitedFor(c, head *verbs.Completion) time.Duration {
	from, to := max(c.Posted, reached(head)), min(reached(c), head.Delivered)
	if c == head || from >= to {
		return 0
	}
	return time.Duration(to - from)
}
