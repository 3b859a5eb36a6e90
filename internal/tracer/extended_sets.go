package tracer

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// mostSets bounds the combinations of functions that are remembered of one
// library; providers have a handful.
const mostSets = 64

// probedSet is a combination of functions of one library that is probed: at
// which file offsets they begin, in no process in particular.
type probedSet struct {
	kind uint32
	// offsets of the pointers in the file; where a pointer is not of the file,
	// fixed has it as it is.
	offsets, fixed [bpf.TrackerQpFunctionQP_FUNCTIONS]uint64
	set            bpf.TrackerExtendedSet
}

// remember keeps a combination for processes to come.
func (l *extendedLibrary) remember(p *pendingSet, offsets []uint64) {
	s := probedSet{kind: p.key.Kind, set: p.set}
	for i, offset := range offsets {
		s.offsets[i] = offset
		if offset == 0 {
			s.fixed[i] = p.set.Pointers[i]
		}
	}
	known := slices.ContainsFunc(l.sets, func(o probedSet) bool {
		return o.kind == s.kind && o.offsets == s.offsets && o.fixed == s.fixed
	})
	if !known && len(l.sets) < mostSets {
		l.sets = append(l.sets, s)
	}
}

// in is the combination as a process has it that mapped the library there.
func (s *probedSet) in(id verbs.ProcessID, code provider.Code) (pendingSet, bool) {
	p := pendingSet{key: bpf.TrackerExtendedKey{Tgid: id.TGID, Incarnation: id.Incarnation, Kind: s.kind}, set: s.set}
	for i, offset := range s.offsets {
		p.set.Pointers[i] = s.fixed[i]
		if offset == 0 {
			continue
		}
		address, ok := code.Address(offset)
		if !ok {
			return p, false
		}
		p.set.Pointers[i] = address
	}
	p.key.Digest = digestPointers(s.kind, p.set.Pointers[:])
	return p, true
}

// digestPointers is digest_pointers of bpf/extended.h.
func digestPointers(kind uint32, pointers []uint64) uint64 {
	digest := uint64(0)
	if bpf.TrackerExtendedKind(kind) == bpf.TrackerExtendedKindEXTENDED_CQ {
		pointers = pointers[:bpf.TrackerCqFunctionCQ_FUNCTIONS]
	}
	for i, pointer := range pointers {
		if i == int(bpf.TrackerQpFunctionQP_COMPLETE) {
			continue // Providers exchange it. A CQ has no pointer of that index.
		}
		digest = digest*0x100000001b3 + pointer
	}
	return digest
}

// foretellLater does not hold up the control events.
func (t *Tracer) foretellLater(id verbs.ProcessID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.look(func() {
		if err := t.foretellExtended(id); err != nil {
			t.warnings.warn(time.Now(), "the queues of a process may not be followed from their first request", "pid", id.TGID, "error", err)
		}
	})
}

// foretellExtended tells the kernel side of the functions that a process which
// opened a device may use and that are probed already: its queues can then be
// followed from their first request.
func (t *Tracer) foretellExtended(id verbs.ProcessID) error {
	code, err := t.finder.Code(int(id.TGID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.notLookedInto(err, "pid", id.TGID)
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	for _, c := range code {
		a := t.libraries.attachments[fileKey{c.Device, c.Inode}]
		if a == nil || a.extended == nil {
			continue
		}
		for i := range a.extended.sets {
			p, ok := a.extended.sets[i].in(id, c)
			if !ok {
				continue
			}
			if err := t.side.maps.ExtendedSets.Update(&p.key, &p.set, ebpf.UpdateAny); err != nil {
				return fmt.Errorf("telling the kernel side of probed functions: %w", err)
			}
		}
	}
	return nil
}
