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
		if !t.showsOn(processOf(&q.Key), t.devices.name(q.Device)) {
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
	wr := verbs.WorkRequest{
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
		Outstanding: q.Outstanding,
		Posted:      entry.PostedNs,
		Poster: verbs.Thread{
			TID:  entry.Tid,
			CPU:  uint32(entry.Cpu),
			Name: t.threadName(processOf(&q.Key), entry.Tid),
		},
	}
	t.describe(&wr)
	return verbs.Stuck{WorkRequest: wr, Age: time.Duration(now - entry.PostedNs)}
}
