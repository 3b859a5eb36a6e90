package rdmareceiver

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// maxQuotas bounds the processes whose CPU quotas are read each second.
	maxQuotas = 256
	// quotaActive is how recently a process must have posted or completed something
	// for its quota to be read.
	quotaActive = 2 * time.Second
)

// quotas remembers what CPU quotas took away from processes. It is not safe for
// concurrent use.
type quotas struct {
	// read returns what a process lost so far. nil where there is no such source.
	read  func(pid int) (process.Throttling, error)
	taken readings[verbs.ProcessID, process.Throttling]
}

// look reads the quotas of the processes that are active or wait for something.
func (q *quotas) look(snap *verbs.Snapshot) {
	if q.read == nil {
		return
	}
	taken := map[verbs.ProcessID]process.Throttling{}
	tried := map[verbs.ProcessID]bool{}
	for i := range snap.Queues {
		queue := &snap.Queues[i]
		id := queue.ID.Process
		idle := queue.Outstanding == 0 && snap.Monotonic > queue.Activity+uint64(quotaActive)
		if idle || id.InKernel() || tried[id] || len(tried) == maxQuotas {
			continue
		}
		tried[id] = true
		if t, err := q.read(int(id.TGID)); err == nil {
			taken[id] = t
		}
	}
	q.taken.add(snap.Monotonic, taken)
}

// took is what the quotas of a process took away from the last reading before a
// moment until now, nil when that is not known.
func (q *quotas) took(id verbs.ProcessID, since uint64) *diagnose.Throttling {
	after, ok := q.taken.latest(id)
	switch {
	case !ok:
		return nil
	case after == (process.Throttling{}):
		return &diagnose.Throttling{}
	}
	before, ok := q.taken.before(id, since)
	if !ok || after.Count < before.Count || after.Time < before.Time {
		// Readings that go down are of another control group.
		return nil
	}
	return &diagnose.Throttling{Count: after.Count - before.Count, Time: after.Time - before.Time}
}
