package tracer

import (
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// stuckKey names one work request of one life of a queue.
type stuckKey struct {
	generation, sequence uint64
}

// reportStuck looks for sends that have been outstanding for too long. Only a
// synced queue is certain enough to say so.
func (t *Tracer) reportStuck(now uint64) error {
	still := map[stuckKey]bool{}
	err := t.side.forEachQueue(func(_ uint32, q *bpf.TrackerQueue) error {
		if q.EndedNs != 0 || q.Outstanding == 0 || bpf.TrackerQueueSync(q.Sync) != bpf.TrackerQueueSyncQUEUE_SYNCED {
			return nil
		}
		entry, sequence, ok := t.side.oldest(q)
		if !ok || now < entry.PostedNs+uint64(stuckAfter) {
			return nil
		}
		key := stuckKey{q.Generation, sequence}
		still[key] = true
		if t.reported[key] {
			return nil
		}
		select {
		case t.stuck <- t.stuckOf(q, &entry, now):
		default:
			t.dropped.Add(1)
		}
		return nil
	})
	t.reported = still
	return err
}

func (t *Tracer) stuckOf(q *bpf.TrackerQueue, entry *bpf.TrackerEntry, now uint64) verbs.Stuck {
	s := verbs.Stuck{
		Queue:       verbs.QueueID{Process: processOf(&q.Key), Context: q.Key.Object, QPNumber: q.Key.QpNum},
		QPType:      verbs.QPType(q.QpType),
		RemoteQP:    q.RemoteQp,
		CQ:          q.SendCq,
		Device:      t.devices.name(q.Device),
		Port:        q.Port,
		Operation:   verbs.Operation(entry.Operation),
		WRID:        entry.WrId,
		Bytes:       uint64(entry.Bytes),
		LocalKey:    entry.Lkey,
		Posted:      entry.PostedNs,
		Age:         time.Duration(now - entry.PostedNs),
		Outstanding: q.Outstanding,
		Poster: verbs.Thread{
			TID:  entry.Tid,
			CPU:  uint32(entry.Cpu),
			Name: t.threadName(processOf(&q.Key), entry.Tid),
		},
	}
	if s.Queue.Process.InKernel() {
		describeStuckConsumer(&s)
	}
	if qp, ok := t.resources.find(s.Queue, s.Device); ok {
		describeStuck(&s, &qp)
	}
	s.Memory = t.resources.memoryOf(s.Queue.Process, s.Device, s.LocalKey, s.Posted)
	return s
}
