package radar

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// wellAfter is how long a queue has to be without trouble for the next one to be
	// another.
	wellAfter = time.Minute
	// troubleKept is for how long after it a trouble is told.
	troubleKept = 15 * time.Minute
	// stuckLeast is the age from which a send is stuck.
	stuckLeast = time.Second
	// maxTroubles bounds the queues whose trouble is remembered.
	maxTroubles = 4096
)

// Burst is what was slow on one queue within about a second, and why.
type Burst struct {
	Queue  verbs.QueueID
	Device string
	// First and Last are when the first request was posted and the last one was
	// delivered or looked at.
	First, Last time.Time
	// Slow counts completions, Lost is their excess time, Worst the longest
	// duration, Stages is where the time of all of them went.
	Slow   uint64
	Lost   time.Duration
	Worst  time.Duration
	Stages [verbs.NumStages]time.Duration
	// Stuck counts sends that do not complete.
	Stuck uint64
	// Cause is the name of the cause, Title what people call it.
	Cause, Title string
}

// troubles are those of queues.
type troubles struct {
	of map[verbs.QueueID]Trouble
}

func newTroubles() troubles { return troubles{of: map[verbs.QueueID]Trouble{}} }

func (t *troubles) add(b *Burst) {
	first, last := b.First.UnixMilli(), b.Last.UnixMilli()
	now, ok := t.of[b.Queue]
	switch {
	case ok && first-now.Last <= wellAfter.Milliseconds():
	case !ok && len(t.of) >= maxTroubles && !t.forget(last):
		return
	default:
		now = Trouble{Since: first}
	}
	now.Since, now.Last = min(now.Since, first), max(now.Last, last)
	now.Slow += b.Slow
	now.Lost += int64(b.Lost)
	now.Worst = max(now.Worst, int64(b.Worst))
	now.Stuck, now.Cause = b.Stuck, b.Cause
	t.of[b.Queue] = now
}

// forget drops the troubles that are long over, and reports whether there is room.
func (t *troubles) forget(now int64) bool {
	for queue, trouble := range t.of {
		if now-trouble.Last > troubleKept.Milliseconds() {
			delete(t.of, queue)
		}
	}
	return len(t.of) < maxTroubles
}

// view returns a copy.
func (t *troubles) view(now int64) map[verbs.QueueID]Trouble {
	t.forget(now)
	all := make(map[verbs.QueueID]Trouble, len(t.of))
	for queue, trouble := range t.of {
		all[queue] = trouble
	}
	return all
}
