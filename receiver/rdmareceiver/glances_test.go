package rdmareceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// neighbour is a queue of the trainer that completed n and had slow ones.
func neighbour(qpn uint32, cq uint64, peer byte, n uint32, slow uint64) verbs.QueueInfo {
	q := queueOf(trainer, qpn)
	q.SendCQ = cq
	q.Path.RemoteGID = verbs.GID{15: peer}
	q.Traffic = verbs.Traffic{Generation: 1, Slow: slow, Durations: [verbs.QueueBuckets]uint32{20: n}}
	return q
}

func TestNeighbours(t *testing.T) {
	elsewhere := neighbour(9, 0x9, 1, 1, 0)
	elsewhere.Device = "mlx5_1"
	foreign := neighbour(8, 0x1, 2, 1, 1)
	foreign.ID.Process = peer
	queues := []verbs.QueueInfo{
		neighbour(1, 0x1, 1, 1, 1), // The queue itself.
		neighbour(2, 0x1, 1, 5, 1), // Same CQ, same peer.
		neighbour(3, 0x2, 1, 5, 0), // Same peer, and its CQ is polled by the same thread.
		neighbour(4, 0x3, 2, 5, 0), // Another thread's.
		neighbour(5, 0x1, 1, 0, 0), // Completes nothing.
		elsewhere, foreign,
	}
	calm := make([]verbs.QueueInfo, len(queues))
	for i, q := range queues {
		q.Traffic.Durations, q.Traffic.Slow = [verbs.QueueBuckets]uint32{}, 0
		calm[i] = q
	}
	g := &glances{}
	assert.Zero(t, g.neighbours(queues[0].ID), "nothing is known yet")
	g.add(&verbs.Snapshot{Queues: calm})
	g.add(&verbs.Snapshot{Queues: queues})
	for cq, thread := range map[uint64]uint32{0x1: 11, 0x2: 11, 0x3: 12} {
		c := fullCompletion()
		c.CQ, c.Poller.TID = cq, thread
		g.seen(&c)
	}
	assert.Equal(t, diagnose.Neighbours{
		Active: 4, Slow: 2, ActiveOfPeer: 2, SlowOfPeer: 1, ActiveOfCQ: 1, SlowOfCQ: 1, ActiveOfThread: 1, ThreadsKnown: true, QueuePairs: 6,
	}, g.neighbours(queues[0].ID))

	g.skip()
	assert.Zero(t, g.neighbours(queues[0].ID), "a glance that failed tells nothing")
}

func TestProcessCounts(t *testing.T) {
	key := counterKey{trainer, "mlx5_0"}
	at := func(second, n uint64) *verbs.Snapshot {
		return &verbs.Snapshot{
			Monotonic: second * uint64(time.Second),
			Rejected: []verbs.RejectedPosts{
				{Process: trainer, Device: "mlx5_0", Errno: 12, Count: n},
				{Process: trainer, Device: "mlx5_0", Errno: 22, Count: 100 * n},
				{Process: trainer, Device: "mlx5_0", Count: 3 * n},
			},
			Empty:         []verbs.ReceiveEmpty{{Process: trainer, Device: "mlx5_0", Count: 2 * n}},
			Registrations: []verbs.Registrations{{Process: trainer, Device: "mlx5_0", Count: n, Bytes: n, Time: 3, DeregistrationTime: time.Duration(n)}},
		}
	}
	g := &glances{}
	assert.Zero(t, g.grew(key, 0))
	for second := range uint64(30) {
		g.add(at(second, second*second))
	}
	second := uint64(time.Second)
	assert.Equal(t, processTally{rejected: 29*29 - 28*28, refused: 3 * (29*29 - 28*28), empty: 2 * (29*29 - 28*28), registered: 57, regBytes: 57, regTime: 57}, g.grew(key, 28*second))
	assert.EqualValues(t, 29*29-27*27, g.grew(key, 28*second-second/2).rejected, "the last one before")
	assert.EqualValues(t, 29*29-14*14, g.grew(key, second).rejected, "as far back as is known")
	assert.Zero(t, g.grew(counterKey{peer, "mlx5_0"}, 28*second))
	g.add(at(30, 1))
	assert.Zero(t, g.grew(key, 28*second), "counts that go down are of another")
}

func TestBaselineOfAQueue(t *testing.T) {
	traffic := verbs.Traffic{Durations: [verbs.QueueBuckets]uint32{30: 60, 32: 39, 50: 1}}
	assert.Nil(t, baselineOf(&verbs.QueueInfo{Traffic: verbs.Traffic{Durations: [verbs.QueueBuckets]uint32{30: 99}}}))
	got := baselineOf(&verbs.QueueInfo{Posted: 400, Traffic: traffic})
	require.NotNil(t, got)
	within := func(bucket int, d time.Duration) {
		t.Helper()
		assert.Greater(t, d, verbs.QueueBucketEdge(bucket-1))
		assert.Less(t, d, verbs.QueueBucketEdge(bucket))
	}
	within(30, got.Median)
	within(32, got.P99)
	assert.EqualValues(t, 100, got.Samples)
	assert.InDelta(t, 4, got.Requests, 1e-9)
}

func TestEventsOfLate(t *testing.T) {
	l := &eventLog{}
	for i := range uint64(100) {
		l.add(verbs.AsyncEvent{Monotonic: i * uint64(time.Second)})
	}
	recent := l.since(95 * uint64(time.Second))
	assert.Len(t, recent, 15)
	assert.Equal(t, 85*uint64(time.Second), recent[0].Monotonic)
	assert.Len(t, l.since(0), maxRecentEvents)
}
