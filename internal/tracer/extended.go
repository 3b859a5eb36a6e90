package tracer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// extendedPause bounds how often objects of the extended verbs are looked at: a
// process can make as many as it likes.
const extendedPause = 5 * time.Millisecond

// wakeExtended asks for a look at the combinations of functions that the kernel
// side has seen.
func (t *Tracer) wakeExtended() {
	select {
	case t.extended <- struct{}{}:
	default: // It was asked to already.
	}
}

// followExtended probes the functions of the extended verbs as objects with
// them turn up. Once a second it looks at those whose library was not probed.
func (t *Tracer) followExtended(ctx context.Context) {
	ticker := time.NewTicker(scanInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.extended:
		case <-ticker.C:
			if err := t.tidyExtended(); err != nil {
				t.log.Warn("the map of functions was not tidied", "error", err)
			}
		}
		if err := t.resolveExtended(); err != nil {
			t.log.Warn("functions of the extended verbs are not traced", "error", err)
		}
		t.loadLater(ctx)
		time.Sleep(extendedPause)
	}
}

// errNoObject says that what was read are no pointers of the extended verbs: an
// object of another kind has anything in that place.
var errNoObject = errors.New("no object of the extended verbs")

type pendingSet struct {
	key bpf.TrackerExtendedKey
	set bpf.TrackerExtendedSet
}

// resolveExtended turns the pointers of new combinations into places in files,
// process by process.
func (t *Tracer) resolveExtended() error {
	pending := map[uint32][]pendingSet{}
	var p pendingSet
	entries := t.side.maps.ExtendedSets.Iterate()
	for entries.Next(&p.key, &p.set) {
		if p.set.AttachedNs == 0 && p.set.Refused == 0 {
			pending[p.key.Tgid] = append(pending[p.key.Tgid], p)
		}
	}
	var errs []error
	if err := entries.Err(); err != nil {
		errs = append(errs, fmt.Errorf("reading %s: %w", t.side.maps.ExtendedSets, err))
	}
	for tgid, sets := range pending {
		errs = append(errs, t.resolveSets(tgid, sets))
	}
	return errors.Join(errs...)
}

func (t *Tracer) resolveSets(tgid uint32, sets []pendingSet) error {
	code, err := t.finder.Code(int(tgid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // It has ended.
	}
	if err != nil {
		t.notLookedInto(err, "pid", tgid)
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	var errs []error
	for i := range sets {
		errs = append(errs, t.probeSet(&sets[i], code))
	}
	return errors.Join(errs...)
}

// probeSet probes the functions of one combination. It is called with mu held.
func (t *Tracer) probeSet(p *pendingSet, code []provider.Code) error {
	parts, err := partsOf(p.key.Kind)
	if err != nil {
		return err
	}
	first := slices.IndexFunc(code, func(c provider.Code) bool {
		_, ok := c.FileOffset(p.set.Pointers[parts[0].index])
		return ok
	})
	var a *attachment
	if first >= 0 {
		if a = t.libraries.attachments[fileKey{code[first].Device, code[first].Inode}]; a == nil {
			return nil // It may be probed shortly.
		}
	}
	err = t.probeFunctions(a, p, parts, code)
	switch {
	case err == nil:
	case errors.Is(err, errNotLoaded):
		return nil // It is looked at again when they are.
	case errors.Is(err, errNoObject), errors.Is(err, provider.ErrUnresolved):
		p.set.Refused = uint32(bpf.TrackerExtendedRefusalREFUSED_NO_OBJECT)
		t.log.Debug("no object of the extended verbs", "pid", p.key.Tgid, "error", err)
	default:
		p.set.Refused = uint32(bpf.TrackerExtendedRefusalREFUSED_PROBES)
		t.warnings.warn(time.Now(), "queues that use the extended verbs are not timed", "pid", p.key.Tgid, "error", err)
	}
	return t.side.storeSet(p)
}

func (t *Tracer) probeFunctions(a *attachment, p *pendingSet, parts []part, code []provider.Code) error {
	if a == nil || a.file.Library.Kind != provider.Provider {
		return fmt.Errorf("%w: no provider has its functions", errNoObject)
	}
	library, err := a.openExtended()
	if err != nil {
		return err
	}
	offsets := a.offsetsOf(p.set.Pointers[:], code)
	for _, part := range parts {
		if p.set.Pointers[part.index] != 0 && offsets[part.index] == 0 && !part.optional {
			return fmt.Errorf("%w: function %d is not of %s", errNoObject, part.index, a.file.DisplayPath)
		}
	}
	wanted, err := library.wanted(parts, offsets)
	if err != nil {
		return fmt.Errorf("%s: %w", a.file.DisplayPath, err)
	}
	if err := t.side.later.check(wanted); err != nil {
		return err
	}
	before := len(library.probed)
	if err := t.side.attachExtended(a, wanted, t.kind); err != nil {
		return fmt.Errorf("probing the extended verbs of %s: %w", a.file.DisplayPath, err)
	}
	if p.key.Kind == uint32(bpf.TrackerExtendedKindEXTENDED_CQ) {
		library.readers(a.file.Library.Name, &p.set, offsets)
	}
	if n := len(library.probed) - before; n != 0 {
		t.log.Info("probing functions of the extended verbs", "library", a.file.DisplayPath, "functions", n)
	}
	p.set.Library = a.cookie
	if p.set.AttachedNs, err = monotonic(); err != nil {
		return err
	}
	library.remember(p, offsets)
	return nil
}

// offsetsOf turns pointers of a process into offsets in the file of the
// attachment, 0 for those that lead elsewhere.
func (a *attachment) offsetsOf(pointers []uint64, code []provider.Code) []uint64 {
	offsets := make([]uint64, len(pointers))
	for _, c := range code {
		if keyOf(a.file.ID) != (fileKey{c.Device, c.Inode}) {
			continue
		}
		for i, pointer := range pointers {
			if offset, ok := c.FileOffset(pointer); ok {
				offsets[i] = offset
			}
		}
	}
	return offsets
}

// mostRefused is how many combinations may be kept that are none of a provider,
// a quarter of the map: a process can make them up.
const mostRefused = 64

// tidyExtended makes room: it drops what processes had that are gone, what was
// refused when that is much, and Completion Queues that are idle.
func (t *Tracer) tidyExtended() error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	var cqKey bpf.TrackerCqKey
	var cq bpf.TrackerExtendedCq
	return errors.Join(t.tidySets(), deleteMatching(t.side.maps.ExtendedCqs, &cqKey, &cq, func() bool {
		return cq.FirstDelivered == 0 && now > cq.Ns+uint64(cqIdle)
	}))
}

func (t *Tracer) tidySets() error {
	var key bpf.TrackerExtendedKey
	var set bpf.TrackerExtendedSet
	gone := map[uint32]bool{}
	refused := 0
	return deleteMatching(t.side.maps.ExtendedSets, &key, &set, func() bool {
		if _, known := gone[key.Tgid]; !known {
			gone[key.Tgid] = isGone(t.cfg.Root, key.Tgid)
		}
		if set.Refused != 0 {
			refused++
		}
		return gone[key.Tgid] || set.Refused != 0 && refused > mostRefused
	})
}

// storeSet answers the kernel side, unless the entry was dropped meanwhile.
func (k *kernelSide) storeSet(p *pendingSet) error {
	err := k.maps.ExtendedSets.Update(&p.key, &p.set, ebpf.UpdateExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("telling the kernel side of probed functions: %w", err)
	}
	return nil
}

// forgetSetsOf makes the kernel side ask anew for what a library was probed for.
func (k *kernelSide) forgetSetsOf(a *attachment) error {
	if a.extended == nil {
		return nil
	}
	var key bpf.TrackerExtendedKey
	var set bpf.TrackerExtendedSet
	return deleteMatching(k.maps.ExtendedSets, &key, &set, func() bool { return set.AttachedNs != 0 && set.Library == a.cookie })
}

// forgetExtended drops what is known of objects of processes that ended.
func (k *kernelSide) forgetExtended(ended func(tgid uint32, incarnation uint64) bool) error {
	var key bpf.TrackerExtendedKey
	var set bpf.TrackerExtendedSet
	var cqKey bpf.TrackerCqKey
	var cq bpf.TrackerExtendedCq
	return errors.Join(
		deleteMatching(k.maps.ExtendedSets, &key, &set, func() bool { return ended(key.Tgid, key.Incarnation) }),
		deleteMatching(k.maps.ExtendedCqs, &cqKey, &cq, func() bool { return ended(cqKey.Tgid, cqKey.Incarnation) }),
	)
}
