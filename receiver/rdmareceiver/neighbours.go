package rdmareceiver

import (
	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// activity counts queues, those that completed something since the glance before, and
// those of them of which something was slow.
type activity struct{ all, active, slow int }

func (a activity) minus(b activity) activity {
	return activity{a.all - b.all, a.active - b.active, a.slow - b.slow}
}

// neighbourhood names what queues of a device have in common, one thing beside the
// device; nothing else is set.
type neighbourhood struct {
	device string
	peer   peerAddress
	// process is set with one of those that follow it.
	process  verbs.ProcessID
	cq       uint64
	thread   uint32
	unpolled bool // nobody was seen to poll its Completion Queue
}

// peerAddress is that of a peer as far as it is known: its GID, or else its LID.
type peerAddress struct {
	gid verbs.GID
	lid uint16
}

func peerOf(p *verbs.Path) peerAddress {
	if p.RemoteGID != (verbs.GID{}) {
		return peerAddress{gid: p.RemoteGID}
	}
	return peerAddress{lid: p.RemoteLID}
}

// neighbourhoodsOf are those of a queue; the first is its device.
func (g *glances) neighbourhoodsOf(q *verbs.QueueInfo) []neighbourhood {
	device := neighbourhood{device: q.Device}
	all := append(make([]neighbourhood, 0, 4), device)
	if peer := peerOf(&q.Path); peer != (peerAddress{}) {
		of := device
		of.peer = peer
		all = append(all, of)
	}
	own := device
	own.process = q.ID.Process
	if q.SendCQ != 0 {
		of := own
		of.cq = q.SendCQ
		all = append(all, of)
	}
	own.thread = g.pollers[cqKey{q.ID.Process, q.SendCQ}]
	own.unpolled = own.thread == 0
	return append(all, own)
}

// activityOf counts one queue.
func (g *glances) activityOf(id verbs.QueueID) activity {
	one := activity{all: 1}
	if active, slow := g.did(id); active {
		count(&one.active, &one.slow, slow)
	}
	return one
}

func count(active, slow *int, isSlow bool) {
	*active++
	if isSlow {
		*slow++
	}
}

// sumUp counts the queues of all neighbourhoods, once in a window: with many
// thousands of queues, of which hundreds are slow, to look at each for each would
// take longer than there is time for a verdict.
func (g *glances) sumUp() {
	g.sums = make(map[neighbourhood]activity, len(g.now.Queues))
	for i := range g.now.Queues {
		q := &g.now.Queues[i]
		one := g.activityOf(q.ID)
		for _, of := range g.neighbourhoodsOf(q) {
			sum := g.sums[of]
			g.sums[of] = activity{sum.all + one.all, sum.active + one.active, sum.slow + one.slow}
		}
	}
}

// neighbours is what the other queues of the device did.
func (g *glances) neighbours(id verbs.QueueID) diagnose.Neighbours {
	own := g.queue(id)
	if own == nil {
		return diagnose.Neighbours{}
	}
	if g.sums == nil {
		g.sumUp()
	}
	self := g.activityOf(id)
	device := g.sums[neighbourhood{device: own.Device}]
	n := diagnose.Neighbours{QueuePairs: device.all}
	if g.before == nil {
		return n
	}
	device = device.minus(self)
	n.Active, n.Slow = device.active, device.slow
	if peer := peerOf(&own.Path); peer != (peerAddress{}) {
		same := g.sums[neighbourhood{device: own.Device, peer: peer}].minus(self)
		n.ActiveOfPeer, n.SlowOfPeer = same.active, same.slow
	}
	g.addOfProcess(&n, own, self)
	return n
}

// addOfProcess adds what the queues of its process did.
func (g *glances) addOfProcess(n *diagnose.Neighbours, own *verbs.QueueInfo, self activity) {
	of := neighbourhood{device: own.Device, process: own.ID.Process}
	cq, polled, unpolled := of, of, of
	cq.cq, polled.thread, unpolled.unpolled = own.SendCQ, g.pollers[cqKey{own.ID.Process, own.SendCQ}], true
	if cq.cq != 0 {
		same := g.sums[cq].minus(self)
		n.ActiveOfCQ, n.SlowOfCQ = same.active, same.slow
	}
	if polled.thread == 0 {
		return
	}
	// The thread polls the queue's own Completion Queue, too.
	others := g.sums[polled].minus(g.sums[cq])
	n.ActiveOfThread, n.SlowOfThread = others.active, others.slow
	n.ThreadsKnown = g.sums[unpolled].active == 0
}
