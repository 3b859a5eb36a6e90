package tracer

import (
	"errors"
	"time"
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/baseline"
)

// looksPerWindow is how often the counts of kinds are read while a level is learned.
const looksPerWindow = 10

// kindAt is a kind of requests and its element in the table of the kernel side.
type kindAt struct {
	kind uint64
	slot uint32
}

// baselines learns what is usual for each kind of requests that the kernel side
// follows, and tells it the limits. One goroutine calls it.
type baselines struct {
	table   *table[bpf.TrackerBaseline]
	window  time.Duration
	learner *baseline.Learner[kindAt]
	next    uint64
	// forgotten counts kinds that were dropped to have room for others.
	forgotten uint64
}

// newBaselines returns nil where every completion is to be reported.
func newBaselines(side *kernelSide, cfg Config) *baselines {
	if cfg.Threshold == 0 {
		return nil
	}
	return &baselines{
		table: side.baselines, window: cfg.learningWindow,
		learner: baseline.NewLearner[kindAt](cfg.Threshold, cfg.learningWindow),
	}
}

// learned says what a look changed: how many limits, and the highest of them. A limit
// of 0 is the threshold.
type learned struct {
	limits  int
	highest time.Duration
}

// look reads the counts, if it is time to, and writes the limits that changed.
func (b *baselines) look(now uint64) (changes learned, err error) {
	if b == nil || now < b.next {
		return learned{}, nil
	}
	b.next = now + uint64(b.window)/looksPerWindow
	for slot := range b.table.length {
		counts, err := b.table.load(slot)
		if err != nil {
			return changes, err
		}
		if counts.Kind == 0 {
			continue
		}
		limit, changed := b.learner.Observe(now, kindAt{counts.Kind, slot}, &counts.Requests)
		if !changed {
			continue
		}
		changes.limits++
		changes.highest = max(changes.highest, limit)
		if err := b.table.store64(slot, unsafe.Offsetof(counts.LimitNs), uint64(limit)); err != nil {
			return changes, err
		}
	}
	return changes, b.makeRoom()
}

// makeRoom keeps a fourth of the table free: it drops the kinds that had no request
// for the longest time. Until they are learned anew they have the threshold. What a
// program counts at that moment may end up with the next kind of the element.
func (b *baselines) makeRoom() error {
	most := int(b.table.length) / 4 * 3
	var errs []error
	for _, kind := range b.learner.Stalest(b.learner.Len() - most) {
		b.learner.Forget(kind)
		b.forgotten++
		errs = append(errs, b.table.store(kind.slot, &bpf.TrackerBaseline{}))
	}
	return errors.Join(errs...)
}

// forgetDevices drops the kinds of requests of devices, by their indexes.
func (b *baselines) forgetDevices(indexes map[uint32]bool) error {
	if b == nil {
		return nil
	}
	var errs []error
	for slot := range b.table.length {
		counts, err := b.table.load(slot)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		if counts.Kind == 0 || !indexes[deviceOfKind(counts.Kind)] {
			continue
		}
		b.learner.Forget(kindAt{counts.Kind, slot})
		errs = append(errs, b.table.store(slot, &bpf.TrackerBaseline{}))
	}
	return errors.Join(errs...)
}

// deviceOfKind is the device of a kind, see KIND_USED in bpf/types.h.
func deviceOfKind(kind uint64) uint32 { return uint32(kind) >> 16 & 0x7fff }

// dropped is how many kinds were.
func (b *baselines) dropped() uint64 {
	if b == nil {
		return 0
	}
	return b.forgotten
}

// learn looks at what is usual. It is called with mu held.
func (t *Tracer) learn(now uint64) error {
	changes, err := t.baselines.look(now)
	if changes.limits > 0 {
		t.log.Info("what is usual changed, and with it what is slow", "kinds", changes.limits,
			"highest_limit", changes.highest, "threshold", t.cfg.Threshold)
	}
	return err
}
