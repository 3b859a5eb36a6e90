//go:build e2e

package tracer

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// Of slots with one key, the queue is the one that the index names: another is what
// a slower thread was about to make.
func TestOneSlotOfAKeyEnds(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: BPF maps cannot be made without it")
	}
	cfg, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	kind, err := preflight()
	if err != nil {
		t.Fatal(err)
	}
	side, err := load(t.Context(), cfg, kind)
	if err != nil {
		t.Fatal(err)
	}
	defer side.close()

	const owner = 3
	key := bpf.TrackerQueueKey{Incarnation: 70, Object: 0x1000, Tgid: 7, QpNum: 9}
	for slot, indexed := range map[uint32]uint32{1: 0, 2: 1, owner: 1, 4: 0} {
		if err := side.queues.store(slot, &bpf.TrackerQueue{Key: key, Generation: uint64(slot), Indexed: indexed}); err != nil {
			t.Fatal(err)
		}
	}
	if err := side.maps.QueueIndex.Update(&key, uint32(owner), ebpf.UpdateAny); err != nil {
		t.Fatal(err)
	}
	everyOne := func(*bpf.TrackerQueue) bool { return true }
	if err := side.endQueues(1000, bpf.TrackerQueueEndEND_EXIT, everyOne); err != nil {
		t.Fatal(err)
	}
	for slot := range uint32(6) {
		q, err := side.queues.load(slot)
		if err != nil {
			t.Fatal(err)
		}
		if ended := q.EndedNs != 0; ended != (slot == owner) {
			t.Errorf("slot %d ended: %v", slot, ended)
		}
	}
	var named uint32
	if err := side.maps.QueueIndex.Lookup(&key, &named); err == nil {
		t.Errorf("the index still names slot %d", named)
	}
}
