package tracer

import (
	"fmt"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// describePollers sets the threads that poll the Completion Queues. They are known
// where the returns of polls are observed.
func (k *kernelSide) describePollers(queues []verbs.QueueInfo) error {
	pollers := map[bpf.TrackerCqKey]uint32{}
	var key bpf.TrackerCqKey
	var cq bpf.TrackerCq
	entries := k.maps.Cqs.Iterate()
	for entries.Next(&key, &cq) {
		if cq.Shared == 0 {
			pollers[key] = cq.Poller
		}
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("reading who polls the Completion Queues: %w", err)
	}
	for i := range queues {
		q := &queues[i]
		if q.SendCQ != 0 {
			q.Poller = pollers[bpf.TrackerCqKey{Incarnation: q.ID.Process.Incarnation, Cq: q.SendCQ, Tgid: q.ID.Process.TGID}]
		}
	}
	return nil
}
