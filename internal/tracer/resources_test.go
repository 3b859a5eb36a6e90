package tracer

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Without the RDMA core nothing is known, and nothing fails.
func TestResourcesWithoutCore(t *testing.T) {
	cfg, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r := newResources(cfg, nil)
	defer r.close()
	if _, ok := r.find(verbs.QueueID{QPNumber: 1}, "mlx5_0"); ok {
		t.Error("a QP was found")
	}
	if _, ok := r.probeInfo(); ok {
		t.Error("there are probes")
	}
	if destroyed, err := r.sweep(1 << 60); err != nil || len(destroyed) != 0 {
		t.Errorf("destroyed %v, %v", destroyed, err)
	}
	if r.events() != nil || r.mapBytes() != 0 {
		t.Error("there are maps")
	}
	losses := map[string]uint64{}
	r.addLosses(losses)
	if n, ok := losses["kernel_qp_map_full"]; !ok || n != 0 || len(losses) != 7 {
		t.Errorf("losses %v", losses)
	}
}

// An entry whose return is probed later would be taken for a call that does not
// end.
func TestReturnsAreProbedBeforeEntries(t *testing.T) {
	for i, p := range corePoints {
		if p.isReturn && slices.ContainsFunc(corePoints[:i], func(q corePoint) bool { return q.function == p.function }) {
			t.Errorf("%s is probed at its entry first", p.function)
		}
		if strings.HasPrefix(p.function, userModule) != p.user {
			t.Errorf("%s: of %s or not", p.function, userModule)
		}
	}
}

// A queue ends with its QP, not with an earlier one that had the number.
func TestQueueOfDestroyedQP(t *testing.T) {
	qp := bpf.ResourcesKernelQp{Tgid: 7, Incarnation: 70, EndedNs: 1000}
	for name, c := range map[string]struct {
		tgid        uint32
		incarnation uint64
		activity    uint64
		want        bool
	}{
		"its own":                {7, 70, 999, true},
		"the next of the number": {7, 70, 1001, false},
		"of another process":     {8, 70, 999, false},
		"of another program":     {7, 71, 999, false},
	} {
		q := bpf.TrackerQueue{ActivityNs: c.activity}
		q.Key.Tgid, q.Key.Incarnation = c.tgid, c.incarnation
		if got := isOfDestroyed(&q, &qp); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
