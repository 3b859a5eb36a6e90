package rdmareceiver

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// lookedAt is what the other queues did, by looking at each.
func lookedAt(g *glances, own *verbs.QueueInfo) diagnose.Neighbours {
	thread := func(q *verbs.QueueInfo) uint32 { return g.pollers[cqKey{q.ID.Process, q.SendCQ}] }
	n := diagnose.Neighbours{ThreadsKnown: thread(own) != 0}
	for i := range g.now.Queues {
		q := &g.now.Queues[i]
		if q.Device != own.Device {
			continue
		}
		n.QueuePairs++
		active, slow := g.did(q.ID)
		if q.ID == own.ID || !active {
			continue
		}
		count(&n.Active, &n.Slow, slow)
		if peer := peerOf(&q.Path); peer != (peerAddress{}) && peer == peerOf(&own.Path) {
			count(&n.ActiveOfPeer, &n.SlowOfPeer, slow)
		}
		switch {
		case q.ID.Process != own.ID.Process:
		case own.SendCQ != 0 && q.SendCQ == own.SendCQ:
			count(&n.ActiveOfCQ, &n.SlowOfCQ, slow)
		default:
			n.ThreadsKnown = n.ThreadsKnown && thread(q) != 0
			if thread(own) != 0 && thread(q) == thread(own) {
				count(&n.ActiveOfThread, &n.SlowOfThread, slow)
			}
		}
	}
	return n
}

func TestNeighboursAreSummedUpRight(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 5))
		g := &glances{}
		var calm, now verbs.Snapshot
		for qpn := range uint32(60) {
			q := neighbour(qpn, uint64(random.IntN(6)), byte(random.IntN(4)), 0, 0)
			q.ID.Process = []verbs.ProcessID{trainer, peer}[random.IntN(2)]
			q.Device = []string{"mlx5_0", "mlx5_1"}[random.IntN(2)]
			if random.IntN(4) == 0 {
				q.Path.RemoteGID, q.Path.RemoteLID = verbs.GID{}, uint16(random.IntN(3))
			}
			if random.IntN(8) > 0 { // Else it is new.
				calm.Queues = append(calm.Queues, q)
			}
			q.Traffic.Durations[20], q.Traffic.Slow = uint32(random.IntN(3)), uint64(random.IntN(2))
			now.Queues = append(now.Queues, q)
		}
		g.add(&calm)
		g.add(&now)
		for range random.IntN(12) {
			c := fullCompletion()
			c.Queue.Process = []verbs.ProcessID{trainer, peer}[random.IntN(2)]
			c.CQ, c.Poller.TID = uint64(random.IntN(6)), uint32(10+random.IntN(3))
			g.seen(&c)
			q := &g.now.Queues[random.IntN(len(g.now.Queues))]
			assert.Equal(t, lookedAt(g, q), g.neighbours(q.ID), "seed %d, while pollers are seen", seed)
		}
		for i := range g.now.Queues {
			q := &g.now.Queues[i]
			assert.Equal(t, lookedAt(g, q), g.neighbours(q.ID), "seed %d", seed)
		}
	}
}

// What queues did before they were first looked at is not of the window.
func TestNeighboursOfTheFirstGlance(t *testing.T) {
	g := &glances{}
	first := &verbs.Snapshot{Queues: []verbs.QueueInfo{neighbour(1, 1, 1, 900, 9), neighbour(2, 1, 1, 900, 9)}}
	c := fullCompletion()
	c.CQ = 1
	g.seen(&c)
	want := diagnose.Neighbours{QueuePairs: 2}
	g.add(first)
	assert.Equal(t, want, g.neighbours(first.Queues[0].ID))
	g.skip()
	g.add(first)
	assert.Equal(t, want, g.neighbours(first.Queues[0].ID), "nor is what they did before a glance that failed")
	g.add(first)
	assert.Equal(t, diagnose.Neighbours{QueuePairs: 2, ThreadsKnown: true}, g.neighbours(first.Queues[0].ID))
}

func BenchmarkNeighbours(b *testing.B) {
	at := func(n uint32) *verbs.Snapshot {
		s := &verbs.Snapshot{}
		for i := range uint32(16384) {
			s.Queues = append(s.Queues, neighbour(i+1, uint64(i/4)+1, byte(i), n, uint64(n)))
		}
		return s
	}
	g := &glances{}
	g.add(at(1))
	now := at(2)
	for b.Loop() {
		g.add(now)
		for i := range maxHeldQueues {
			g.neighbours(now.Queues[i*64].ID)
		}
	}
}
