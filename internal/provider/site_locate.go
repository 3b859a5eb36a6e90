package provider

import "sort"

// holder is a cell and the place a probe finds it at.
type holder struct {
	place Place
	word  word
	size  int
}

// holders lists everything that a probe can read, registers first.
func (w *walk) holders(state *machineState) []holder {
	var found []holder
	for r := range state.registers {
		if word := state.registers[r]; word.of != noQuantity {
			found = append(found, holder{Place{Kind: PlaceRegister, Register: uint8(r)}, word, 8})
		}
	}
	cells := make([]cell, 0, len(state.slots))
	for c := range state.slots {
		cells = append(cells, c)
	}
	sort.Slice(cells, func(i, j int) bool {
		if cells[i].stack != cells[j].stack {
			return cells[i].stack < cells[j].stack
		}
		return cells[i].offset < cells[j].offset
	})
	for _, c := range cells {
		if place, ok := w.placeOf(c, state); ok {
			found = append(found, holder{place, state.slots[c].word, state.slots[c].size})
		}
	}
	return found
}

// placeOf finds a register from which a slot can be addressed.
func (w *walk) placeOf(c cell, state *machineState) (Place, bool) {
	stack := w.c.a.cpu.stack
	for _, r := range append([]register{stack}, w.frameRegisters(state)...) {
		base := state.register(r)
		if offset := c.offset - base.add; base.of == c.stack && offset >= -1<<20 && offset < 1<<20 {
			return Place{Kind: PlaceMemory, Register: uint8(r), Offset: int32(offset)}, true
		}
	}
	return Place{}, false
}

func (w *walk) frameRegisters(state *machineState) []register {
	var found []register
	for r := range state.registers {
		if _, ok := w.machine.frameCell(state.registers[r]); ok {
			found = append(found, register(r))
		}
	}
	return found
}

// argumentLocation finds an argument, plus a constant, anywhere.
func argumentLocation(held []holder, argument quantity) Location {
	return addressLocation(held, word{argument, 0})
}

// addressLocation finds an address, plus a constant, anywhere.
func addressLocation(held []holder, address word) Location {
	var found Location
	for _, h := range held {
		if h.word.of != address.of || h.size != 8 {
			continue
		}
		// A register costs a probe nothing, memory a read.
		at := Location{Base: h.place, Add: address.add - h.word.add}
		exact := at.Add == 0 && found.Add != 0 && h.place.Kind == PlaceRegister
		if !found.Known() || exact {
			found = at
		}
	}
	return found
}

// completionLocation finds the completion that is delivered when as many as
// count were delivered before. With alone it may be computed from the count:
// by the contract of ibv_poll_cq the completions fill the array in order.
func (l *lockstep) completionLocation(held []holder, count word, alone bool) (Location, bool) {
	for _, h := range held {
		if h.size != 8 || !l.o.contains(h.word.of) {
			continue
		}
		if offset, ok := l.offset(h.word, count); ok {
			return Location{Base: h.place, Add: -offset}, true
		}
	}
	if !alone {
		return Location{}, false
	}
	reduced := l.w.q.reduce(count)
	for _, h := range held {
		if h.size != 8 || h.word.of != quantityOutput {
			continue
		}
		for _, counter := range held {
			have := l.w.q.reduce(counter.word)
			if have.of == reduced.of && have.of != quantityConstant {
				add := sizeofWC*(reduced.add-have.add) - h.word.add
				return Location{Base: h.place, Counter: counter.place, Scale: sizeofWC, Add: add}, true
			}
		}
	}
	return Location{}, false
}

// inferredLocation finds the completion by what is stored: a pointer through
// which members were written.
func (l *lockstep) inferredLocation(held []holder, f *fields) (Location, bool) {
	type evidence struct {
		stores int
		lowest int64
	}
	bases := map[quantity]*evidence{}
	for _, stores := range f.stores {
		for _, s := range stores {
			e := bases[s.at.of]
			if e == nil {
				e = &evidence{lowest: s.at.add}
				bases[s.at.of] = e
			}
			e.stores++
			e.lowest = min(e.lowest, s.at.add)
		}
	}
	if len(bases) == 0 {
		for _, h := range f.handovers {
			bases[h.at.of] = &evidence{stores: 1, lowest: h.at.add}
		}
	}
	best := 0
	var found Location
	for _, h := range held {
		e := bases[h.word.of]
		if e == nil || h.size != 8 || e.stores <= best {
			continue
		}
		best = e.stores
		found = Location{Base: h.place, Add: sizeofWC*floorDivide(e.lowest, sizeofWC) - h.word.add}
	}
	return found, best > 0
}

func floorDivide(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
