package tracer

import (
	"slices"
	"testing"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Each queue that ended is told of once, whether a snapshot comes while its slot
// rests or after that.
func TestEndedQueuesAreToldOnce(t *testing.T) {
	describe := func(q *bpf.TrackerQueue) verbs.QueueInfo { return verbs.QueueInfo{Traffic: trafficOf(q)} }
	queue := func(generation uint64, number uint32) *bpf.TrackerQueue {
		return &bpf.TrackerQueue{Generation: generation, Key: bpf.TrackerQueueKey{QpNum: number}}
	}
	e := newEndedQueues()
	taken := func(want ...uint64) {
		t.Helper()
		var got []uint64
		for _, q := range e.take() {
			got = append(got, q.Traffic.Generation)
		}
		if !slices.Equal(got, want) {
			t.Errorf("told of %d, want %d", got, want)
		}
	}
	taken()
	e.resting(queue(1, 17), describe)
	e.resting(queue(2, srqNumber), describe)
	taken(1)
	e.resting(queue(1, 17), describe)
	e.recycled(queue(1, 17), describe)
	e.recycled(queue(2, srqNumber), describe)
	taken()
	// One that came and went between two snapshots.
	e.recycled(queue(3, 17), describe)
	taken(3)
	if len(e.told) != 0 {
		t.Errorf("%d remembered", len(e.told))
	}
	for i := range uint64(2 * mostEnded) {
		e.recycled(queue(10+i, 17), describe)
	}
	if n := len(e.take()); n != mostEnded {
		t.Errorf("%d kept", n)
	}
}
