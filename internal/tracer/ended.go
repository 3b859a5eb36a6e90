package tracer

import (
	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// mostEnded bounds the queues that are kept for the next snapshot. Those of a job
// that connects anew for each message are not worth more.
const mostEnded = 4096

// endedQueues are queues that ended and of which no snapshot has told. A slot rests
// for a while before it is recycled, and a snapshot may come between.
type endedQueues struct {
	kept []verbs.QueueInfo
	// told are the generations of slots that still rest.
	told map[uint64]bool
}

func newEndedQueues() endedQueues { return endedQueues{told: map[uint64]bool{}} }

// resting keeps a queue whose slot rests, unless a snapshot has told of it.
func (e *endedQueues) resting(q *bpf.TrackerQueue, describe func(*bpf.TrackerQueue) verbs.QueueInfo) {
	if !e.told[q.Generation] {
		e.told[q.Generation] = true
		e.keep(q, describe)
	}
}

// recycled keeps a queue whose slot goes to another one.
func (e *endedQueues) recycled(q *bpf.TrackerQueue, describe func(*bpf.TrackerQueue) verbs.QueueInfo) {
	if !e.told[q.Generation] {
		e.keep(q, describe)
	}
	delete(e.told, q.Generation)
}

func (e *endedQueues) keep(q *bpf.TrackerQueue, describe func(*bpf.TrackerQueue) verbs.QueueInfo) {
	// The books tell of Shared Receive Queues, which lead to no peer.
	if q.Key.QpNum != srqNumber && len(e.kept) < mostEnded {
		e.kept = append(e.kept, describe(q))
	}
}

// take returns what is to be told.
func (e *endedQueues) take() []verbs.QueueInfo {
	taken := e.kept
	e.kept = nil
	return taken
}

// describeEnded says who a queue was, and what it did.
func (t *Tracer) describeEnded(q *bpf.TrackerQueue) verbs.QueueInfo {
	info := verbs.QueueInfo{
		ID:       verbs.QueueID{Process: processOf(&q.Key), Context: q.Key.Object, QPNumber: q.Key.QpNum},
		Type:     verbs.QPType(q.QpType),
		RemoteQP: q.RemoteQp,
		Device:   t.devices.name(q.Device),
		Port:     q.Port,
		Traffic:  trafficOf(q),
	}
	if qp, ok := t.resources.find(info.ID, info.Device); ok {
		describeQueue(&info, &qp)
	}
	return info
}

func trafficOf(q *bpf.TrackerQueue) verbs.Traffic {
	return verbs.Traffic{Generation: q.Generation, Bytes: q.Bytes, Slow: q.Slow, Durations: q.Durations}
}
