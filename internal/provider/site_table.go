package provider

import (
	"encoding/binary"
	"slices"
)

// maxTable bounds the entries of one jump table.
const maxTable = 1024

// jumpTable is an array of offsets of code.
type jumpTable struct {
	address uint64
	// entry is the size of one offset in bytes, scale and base turn it into
	// an address.
	entry int
	scale int64
	base  uint64
}

// table reads the jump table of an indirect jump, nil if it is none or cannot
// be told. Compilers write: load an offset from a constant address, add it,
// perhaps times 4, to a constant address, jump.
func (w *walk) table(jump *step) []uint64 {
	state, ok := w.stateAt(jump.address)
	if !ok {
		return nil
	}
	var targets []uint64
	for _, t := range w.tablesOf(state.register(jump.indirect.base)) {
		for _, target := range w.readTable(jump, t) {
			if !slices.Contains(targets, target) {
				targets = append(targets, target)
			}
		}
	}
	return targets
}

// stateAt is the state before the instruction at an address.
func (w *walk) stateAt(address uint64) (*machineState, bool) {
	for b := range w.g.blocks {
		for i, s := range w.g.blocks[b].steps {
			if s.address == address && w.in[b] != nil {
				return w.before(b, i), true
			}
		}
	}
	return nil, false
}

// tablesOf takes the address jumped to apart.
func (w *walk) tablesOf(to word) []jumpTable {
	info := w.q.info[to.of]
	offset, scale := to.of, int64(1)
	bases := []uint64{uint64(to.add)}
	switch info.kind {
	case kindScaled:
		offset, scale = info.a.of, info.scale
	case kindSum:
		// The base differs by the way here: every one is taken.
		offset = info.a.of
		join := info.b.of
		if w.q.info[offset].kind != kindResult {
			offset, join = join, offset
		}
		bases = bases[:0]
		w.record()
		for _, way := range w.q.info[join].ways {
			if way.word.of == quantityConstant {
				bases = append(bases, uint64(way.word.add+to.add))
			}
		}
	}
	if w.q.info[offset].kind != kindResult {
		return nil
	}
	entry, addresses := w.loadOf(w.q.info[offset].at)
	var found []jumpTable
	for _, base := range bases {
		switch {
		case entry == 0:
		case len(addresses) == 1:
			found = append(found, jumpTable{addresses[0], entry, scale, base})
		case entry == 4 && scale == 1:
			// The offsets are relative to the table itself.
			found = append(found, jumpTable{base, entry, scale, base})
		}
	}
	return found
}

// loadOf describes the load of a table's entry: the size of an entry and the
// address of the first one, where that is known.
func (w *walk) loadOf(address uint64) (int, []uint64) {
	s := w.c.at(address)
	if s == nil || len(s.loads) != 1 || s.loads[0].memory.index == noRegister {
		return 0, nil
	}
	at := s.loads[0].memory
	state, ok := w.stateAt(address)
	if !ok || at.base == noRegister {
		return s.loads[0].size, nil
	}
	if base := state.register(at.base); base.of == quantityConstant {
		return s.loads[0].size, []uint64{uint64(base.add + at.disp)}
	}
	return s.loads[0].size, nil
}

// readTable reads offsets until one does not lead to an instruction of the
// same function or another object begins.
func (w *walk) readTable(jump *step, t jumpTable) []uint64 {
	end := w.nextObject(t.address)
	var targets []uint64
	for i := range uint64(maxTable) {
		at := t.address + i*uint64(t.entry)
		raw := w.c.a.img.bytes(at, t.entry)
		if len(raw) < t.entry || at >= end || !w.c.spend(1) {
			break
		}
		target := t.base + uint64(offsetOf(raw)*t.scale)
		if !w.reachable(jump, target) {
			break
		}
		targets = append(targets, target)
	}
	return targets
}

func offsetOf(raw []byte) int64 {
	switch len(raw) {
	case 1:
		return int64(int8(raw[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(raw)))
	default:
		return int64(int32(binary.LittleEndian.Uint32(raw)))
	}
}

// reachable reports whether an entry may lead to the address: an instruction
// of the function that jumps, or of a part split off that it also reaches.
func (w *walk) reachable(jump *step, target uint64) bool {
	f, home := w.c.function(target), w.c.function(jump.address)
	if f == nil || w.c.at(target) == nil {
		return false
	}
	if f == home {
		return true
	}
	for at := range w.g.at {
		if f.bounds.contains(at) {
			return true
		}
	}
	return false
}

// nextObject is the next address above that the code examined refers to.
func (w *walk) nextObject(address uint64) uint64 {
	next := ^uint64(0)
	for _, f := range w.c.functions {
		if f == nil || !w.c.spend(len(f.instructions)/16) {
			continue
		}
		for i := range f.instructions {
			in := &f.instructions[i]
			for _, a := range in.sets[:in.numSets] {
				if a.from.kind == sourceConstant && uint64(a.from.offset) > address {
					next = min(next, uint64(a.from.offset))
				}
			}
		}
	}
	return next
}
