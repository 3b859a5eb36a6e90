package tracer

import (
	"time"
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// quarantine is how long a slot rests after its queue ended. A program that
// found the queue just before still holds a pointer to it, and a program runs
// for microseconds.
const quarantine = 2 * time.Second

// endNames are the reasons for which what was outstanding is discarded.
var endNames = map[uint32]string{
	uint32(bpf.TrackerQueueEndEND_DESTROY): "destroy",
	uint32(bpf.TrackerQueueEndEND_RESET):   "reset",
	uint32(bpf.TrackerQueueEndEND_EXEC):    "exec",
	uint32(bpf.TrackerQueueEndEND_EXIT):    "exit",
	uint32(bpf.TrackerQueueEndEND_BROKEN):  "broken",
}

// emptied counts how often the Receive Queues of a process ran empty.
type emptiedKey struct {
	process verbs.ProcessID
	device  uint16
}

// ledger accounts for queues whose slots were recycled.
type ledger struct {
	posted, delivered, retired, undone, lost uint64
	discarded                                map[string]uint64
	emptied                                  map[emptiedKey]uint64
}

func newLedger() *ledger {
	return &ledger{discarded: map[string]uint64{}, emptied: map[emptiedKey]uint64{}}
}

// add books a queue that has ended: what is still outstanding is discarded.
func (l *ledger) add(q *bpf.TrackerQueue) {
	l.posted += q.Posted
	l.delivered += q.Delivered
	l.retired += q.Retired
	l.undone += q.Undone
	l.lost += q.Lost
	if rest := q.Posted - q.Delivered - q.Retired - q.Undone - q.Lost; rest != 0 {
		l.discarded[endNames[q.End]] += rest
	}
	l.addEmptied(q)
}

func (l *ledger) addEmptied(q *bpf.TrackerQueue) {
	if q.RecvEmpty != 0 {
		l.emptied[emptiedKey{processOf(&q.Key), q.Device}] += q.RecvEmpty
	}
}

func (l *ledger) clone() *ledger {
	c := *l
	c.discarded = make(map[string]uint64, len(l.discarded))
	for k, v := range l.discarded {
		c.discarded[k] = v
	}
	c.emptied = make(map[emptiedKey]uint64, len(l.emptied))
	for k, v := range l.emptied {
		c.emptied[k] = v
	}
	return &c
}

func processOf(key *bpf.TrackerQueueKey) verbs.ProcessID {
	return verbs.ProcessID{TGID: key.Tgid, Incarnation: key.Incarnation}
}

// forEachQueue visits every slot that belongs to a queue, ended or not. A slot
// that a thread is about to fill, or gives back because another one made the
// queue first, was never in the index and belongs to none.
func (k *kernelSide) forEachQueue(visit func(slot uint32, q *bpf.TrackerQueue) error) error {
	indexed := unsafe.Offsetof(bpf.TrackerQueue{}.Indexed)
	var raw [4]byte
	for slot := range k.queues.length {
		if err := k.queues.loadBytes(slot, indexed, raw[:]); err != nil {
			return err
		}
		if raw == [4]byte{} {
			continue
		}
		q, err := k.queues.load(slot)
		if err != nil {
			return err
		}
		if err := visit(slot, &q); err != nil {
			return err
		}
	}
	return nil
}

// recycle books queues that have rested for long enough, and hands their slots
// and segments out again; gone is told of each before.
func (k *kernelSide) recycle(now uint64, books *ledger, gone func(*bpf.TrackerQueue)) error {
	return k.forEachQueue(func(slot uint32, q *bpf.TrackerQueue) error {
		if q.EndedNs == 0 || now < q.EndedNs+uint64(quarantine) {
			return nil
		}
		if err := k.freeSegments(q); err != nil {
			return err
		}
		books.add(q)
		gone(q)
		return k.freeSlot(slot, q.Generation+uint64(k.queues.length))
	})
}

// endQueues ends the queues that match, with the reason.
func (k *kernelSide) endQueues(now uint64, reason bpf.TrackerQueueEnd, matches func(*bpf.TrackerQueue) bool) error {
	return k.forEachQueue(func(slot uint32, q *bpf.TrackerQueue) error {
		if q.EndedNs != 0 || !matches(q) {
			return nil
		}
		// The kernel side may end it at the same moment, and have another one
		// with the key.
		var named uint32
		if err := k.maps.QueueIndex.Lookup(&q.Key, &named); err != nil || named != slot {
			return nil
		}
		if err := k.maps.QueueIndex.Delete(&q.Key); err != nil {
			return nil
		}
		if err := k.queues.store32(slot, unsafe.Offsetof(q.End), uint32(reason)); err != nil {
			return err
		}
		return k.queues.store64(slot, unsafe.Offsetof(q.EndedNs), now)
	})
}

// cqIdle is how long a Completion Queue may be idle before what is known of it
// gives way to that of others: its destruction is not seen.
const cqIdle = time.Minute

// forgetIdleCQs makes room when the map of Completion Queues fills up.
func (t *Tracer) forgetIdleCQs(now uint64) error {
	if now < t.nextCQScan {
		return nil
	}
	t.nextCQScan = now + uint64(10*time.Second)
	var key bpf.TrackerCqKey
	var value bpf.TrackerCq
	return deleteMatching(t.side.maps.Cqs, &key, &value, func() bool {
		return isIdle(&value, now)
	})
}

// isIdle says whether nobody polled for long. A busy queue may have no short poll.
func isIdle(cq *bpf.TrackerCq, now uint64) bool {
	return now > max(cq.ShortPollNs, cq.PolledNs)+uint64(cqIdle)
}

// forgetCQs drops what is known of the Completion Queues that match.
func (k *kernelSide) forgetCQs(matches func(*bpf.TrackerCqKey) bool) error {
	var key bpf.TrackerCqKey
	var value bpf.TrackerCq
	return deleteMatching(k.maps.Cqs, &key, &value, func() bool { return matches(&key) })
}

// oldest finds the oldest work request of a queue whose completion is due.
func (k *kernelSide) oldest(q *bpf.TrackerQueue) (entry bpf.TrackerEntry, sequence uint64, found bool) {
	end := min(q.Tail, q.Head+queueDepth)
	for sequence = q.Head; sequence < end; sequence++ {
		value := q.Directory[(sequence/segmentEntries)%directorySlots]
		id := value & 0xffff
		if id == 0 || value>>16 != uint32(sequence/queueDepth)&0xffff {
			continue
		}
		offset := uintptr(sequence%segmentEntries) * unsafe.Sizeof(entry)
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&entry)), unsafe.Sizeof(entry))
		if err := k.segments.loadBytes(id-1, offset, raw); err != nil {
			return entry, 0, false
		}
		live := (q.Generation&0xffffff)<<40 | (sequence&0xffffffff)<<8 | uint64(bpf.TrackerEntryStateENTRY_LIVE)
		if entry.Word == live && (entry.Flags&entrySignaled != 0 || q.SigAll != 0) {
			return entry, sequence, true
		}
	}
	return entry, 0, false
}

// The layout of the queues, as in bpf/types.h.
const (
	segmentEntries = uint64(len(bpf.TrackerSegment{}.Entries))
	directorySlots = uint64(len(bpf.TrackerQueue{}.Directory))
	queueDepth     = segmentEntries * directorySlots
	entrySignaled  = 1
)
