package tracer

import (
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// mostPeers bounds the peers whose numbers are remembered. With one more all are
// forgotten, and get other numbers on new queues: what is usual for those is learned
// anew. So nobody who connects to ever more peers takes their numbers from the others.
const mostPeers = 4096

// peerEnd is the far end of a queue, as far as it is known.
type peerEnd struct {
	gid verbs.GID
	lid uint16
}

// peers gives the peers of queues numbers, from 1 on.
type peers struct {
	numbers map[peerEnd]uint32
	last    uint32
}

// number is 0 where the peer is not known.
func (p *peers) number(path *verbs.Path) uint32 {
	end := peerEnd{gid: path.RemoteGID, lid: path.RemoteLID}
	if n := p.numbers[end]; n != 0 || end == (peerEnd{}) {
		return n
	}
	if p.numbers == nil || len(p.numbers) == mostPeers {
		p.numbers = map[peerEnd]uint32{}
	}
	p.last++
	p.numbers[end] = p.last
	return p.last
}

// tellPeers tells the kernel side of the peers of queues that are in use and whose
// peer it does not know.
func (t *Tracer) tellPeers(now uint64) error {
	return t.side.forEachQueue(func(slot uint32, q *bpf.TrackerQueue) error {
		if q.Peer != 0 || q.EndedNs != 0 || q.Posted == 0 || now > q.ActivityNs+uint64(2*scanInterval) {
			return nil
		}
		id := verbs.QueueID{Process: processOf(&q.Key), Context: q.Key.Object, QPNumber: q.Key.QpNum}
		qp, ok := t.resources.find(id, t.devices.name(q.Device))
		if !ok {
			return nil
		}
		path := pathOf(&qp)
		return t.side.queues.store32(slot, unsafe.Offsetof(q.Peer), t.peers.number(&path))
	})
}
