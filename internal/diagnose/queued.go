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

// slowHead returns the longest time that a request took by itself, and whether that
// was slow: then those behind it were slow for its reason. A head that moves on
// within the threshold is not slow, however many are behind it.
func (b *Burst) slowHead() (own time.Duration, slow bool) {
	for i := range b.Slow {
		c := &b.Slow[i]
		took := c.Duration() - queued(c)
		own = max(own, took)
		slow = slow || took > c.Threshold
	}
	return own, slow
}
