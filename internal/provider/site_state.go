package provider

// cell is something that holds a value: a register, or a slot of the stack
// frame at a distance from a fixed stack address.
type cell struct {
	// stack is noQuantity for a register.
	stack    quantity
	register register
	offset   int64
}

func registerCell(r register) cell { return cell{register: r} }

// slot is the content of a cell of the frame.
type slot struct {
	word word
	size int
}

// machineState is what is known before an instruction.
type machineState struct {
	registers [32]word
	slots     map[cell]slot
}

func (s *machineState) clone() *machineState {
	c := &machineState{registers: s.registers, slots: make(map[cell]slot, len(s.slots))}
	for k, v := range s.slots {
		c.slots[k] = v
	}
	return c
}

func (s *machineState) register(r register) word {
	if r >= 32 {
		return word{}
	}
	return s.registers[r]
}

// maxSlots bounds the slots of one frame that are followed.
const maxSlots = 128

// write puts a word into a slot of the frame and forgets what it overlaps.
func (s *machineState) write(at cell, size int, w word) {
	for k, v := range s.slots {
		if k.stack == at.stack && k.offset < at.offset+int64(size) && at.offset < k.offset+int64(v.size) {
			delete(s.slots, k)
		}
	}
	if w.of != noQuantity && (size == 4 || size == 8) && len(s.slots) < maxSlots {
		s.slots[at] = slot{w, size}
	}
}

// read returns the content of a slot.
func (s *machineState) read(at cell, size int) (word, bool) {
	v, ok := s.slots[at]
	if !ok || v.size < size {
		return word{}, false
	}
	return v.word, true
}

// memoryAccess is what the walk reports of accesses outside the frame.
type memoryAccess struct {
	at    word
	size  int
	value register
	// stored is the word stored, of no quantity if it is not known.
	stored word
}

// Parts tell the quantities of one instruction apart.
const (
	partUnknown      = 100
	partStoreAddress = 1000
	partLoadAddress  = 2000
	partLoad         = 3000
	partChoice       = 4000
)

// machine executes instructions on states.
type machine struct {
	cpu *processor
	q   *quantities
	// wrote is called for stores outside the frame, nil for nobody.
	wrote func(s *step, m memoryAccess)
	// escaped are slots whose address was stored: any call may change them.
	escaped map[cell]bool
}

// execute changes the state as the instruction does.
func (m *machine) execute(s *step, state *machineState) {
	type result struct {
		e    *effect
		word word
		at   word
	}
	var results [4]result
	n := 0
	for i := range s.effects {
		if n == len(results) {
			break
		}
		e := &s.effects[i]
		r := result{e: e, word: m.evaluate(s, i, e.from, state)}
		if e.to == noRegister {
			r.at = m.address(s, partStoreAddress+i, e.at, state)
		}
		results[n] = r
		n++
	}
	if s.flow == flowCall {
		m.call(state)
	}
	for r := register(0); r < 32; r++ {
		if s.lost.has(r) {
			state.registers[r] = m.lose(s, r)
		}
	}
	for _, r := range results[:n] {
		if r.e.to != noRegister {
			if r.e.to < 32 {
				state.registers[r.e.to] = r.word
			}
			continue
		}
		if taken, ok := m.frameCell(r.word); ok && r.e.value != noRegister && !m.saves(r.at, r.word) {
			m.escaped[taken] = true
		}
		if at, ok := m.frameCell(r.at); ok {
			state.write(at, r.e.size, r.word)
			continue
		}
		if m.wrote != nil {
			m.wrote(s, memoryAccess{at: r.at, size: r.e.size, value: r.e.value, stored: r.word})
		}
	}
}

// call forgets the slots that the called function may change: those whose
// addresses it is given or were stored before.
func (m *machine) call(state *machineState) {
	for c := range m.escaped {
		delete(state.slots, c)
	}
	for _, r := range m.cpu.passed {
		if at, ok := m.frameCell(state.register(r)); ok {
			state.write(at, 8, word{})
		}
	}
}

// lose is the new content of a register about which nothing is known.
func (m *machine) lose(s *step, r register) word {
	kind := kindResult
	if s.flow == flowCall && r == m.cpu.result {
		kind = kindCall
	}
	return word{m.q.get(quantityKey{kind: kind, at: s.address, part: int(r)}, word{}, word{}, 0), 0}
}

// saves reports whether a store of a frame address only saves the pointer of
// this frame or of the caller's.
func (m *machine) saves(at, stored word) bool {
	_, inFrame := m.frameCell(at)
	return inFrame && stored.of == quantityStack && stored.add >= 0
}

// frameCell is the slot at an address that lies in the frame.
func (m *machine) frameCell(at word) (cell, bool) {
	if at.of == quantityStack || m.q.info[at.of].kind == kindAligned {
		return cell{stack: at.of, offset: at.add}, true
	}
	return cell{}, false
}

// address is the content of a memory operand's address.
func (m *machine) address(s *step, part int, at memoryOperand, state *machineState) word {
	if !at.known {
		return m.unknown(s, part)
	}
	return m.evaluate(s, part, at.formula(), state)
}

func (m *machine) unknown(s *step, part int) word {
	return word{m.q.get(quantityKey{kind: kindResult, at: s.address, part: partUnknown + part}, word{}, word{}, 0), 0}
}

// operand reads an operand.
func (m *machine) operand(s *step, part int, o operand, state *machineState) word {
	switch o.kind {
	case operandRegister:
		if w := state.register(o.register); w.of != noQuantity {
			return w
		}
	case operandMemory:
		at, ok := m.frameCell(m.address(s, partLoadAddress+part, o.memory, state))
		if !ok {
			break
		}
		if w, ok := state.read(at, o.size); ok {
			return w
		}
	}
	return m.unknown(s, partLoad+part)
}

// evaluate computes a formula.
func (m *machine) evaluate(s *step, part int, f formula, state *machineState) word {
	key := func(kind quantityKind) quantityKey { return quantityKey{kind: kind, at: s.address, part: part} }
	read := func(o operand, n int) word { return m.operand(s, part*8+n, o, state) }
	switch f.kind {
	case formulaSum:
		return m.sum(f, key, read)
	case formulaDifference:
		b := read(f.b, 1)
		if f.a.kind == operandNone {
			if b.of == quantityConstant {
				return number(f.add - b.add)
			}
			return word{m.q.get(key(kindDifference), number(f.add), b, 0), 0}
		}
		a := read(f.a, 0)
		if b.of == quantityConstant {
			return a.plus(f.add - b.add)
		}
		return word{m.q.get(key(kindDifference), a, b, 0), f.add}
	case formulaChoice:
		a, b := read(f.a, 0), read(f.b, 1)
		if (f.add == 1 || f.add == -1) && b.of != quantityConstant {
			b = word{m.q.get(quantityKey{kind: kindStep, at: s.address, part: partChoice + part}, b, word{}, f.add), 0}
		} else {
			b = b.plus(f.add)
		}
		if a == b {
			return a
		}
		return word{m.q.get(key(kindChoice), a, b, 0), 0}
	case formulaProduct:
		b, c := read(f.b, 1), read(f.c, 2)
		if b.of == quantityConstant {
			b, c = c, b
		}
		if c.of != quantityConstant {
			break
		}
		scaled := m.scaled(quantityKey{kind: kindScaled, at: s.address, part: part}, b, c.add)
		if f.a.kind == operandNone {
			return scaled
		}
		return m.add(key(kindSum), read(f.a, 0), scaled)
	case formulaAlign:
		return word{m.q.get(key(kindAligned), word{}, word{}, 0), 0}
	}
	return m.unknown(s, part)
}

func (m *machine) sum(f formula, key func(quantityKind) quantityKey, read func(operand, int) word) word {
	if f.a.kind == operandNone && f.b.kind == operandNone {
		return number(f.add)
	}
	if f.b.kind == operandNone {
		a := read(f.a, 0)
		if (f.add == 1 || f.add == -1) && f.a.kind != operandNone && !(a.of == quantityConstant && a.add > 1) {
			return word{m.q.get(key(kindStep), a, word{}, f.add), 0}
		}
		return a.plus(f.add)
	}
	b := read(f.b, 1)
	scaled := b
	if f.scale != 1 {
		scaled = m.scaled(key(kindScaled), b, f.scale)
	}
	if f.a.kind == operandNone {
		return scaled.plus(f.add)
	}
	a := read(f.a, 0)
	sum := m.add(key(kindSum), a, scaled)
	by, from := f.add, sum
	if sum.of == a.of {
		by, from = sum.add+f.add-a.add, a
	}
	if step := key(kindStep); (by == 1 || by == -1) && step.part < partStoreAddress && sum.of != quantityConstant {
		return word{m.q.get(step, from, word{}, by), 0}
	}
	return sum.plus(f.add)
}

// add is a+b. Multiples of the same are collected: a compiler multiplies by
// 48 as (x + 2x) << 4.
func (m *machine) add(key quantityKey, a, b word) word {
	switch {
	case a.of == quantityConstant:
		return b.plus(a.add)
	case b.of == quantityConstant:
		return a.plus(b.add)
	}
	for _, pair := range [2][2]word{{a, b}, {b, a}} {
		// x + (n - x)
		if info := &m.q.info[pair[1].of]; info.kind == kindDifference && info.b == pair[0] {
			return info.a.plus(pair[1].add)
		}
	}
	of, factor := m.multiple(a)
	other, more := m.multiple(b)
	if of == other && of.of != noQuantity {
		key.kind = kindScaled
		return m.scaled(key, of, factor+more)
	}
	return word{m.q.get(key, a, b, 0), 0}
}

// multiple takes a word as a multiple of another.
func (m *machine) multiple(w word) (word, int64) {
	if info := &m.q.info[w.of]; info.kind == kindScaled && w.add == 0 {
		return info.a, info.scale
	}
	return w, 1
}

// scaled is factor*w.
func (m *machine) scaled(key quantityKey, w word, factor int64) word {
	if w.of == quantityConstant {
		return number(w.add * factor)
	}
	of, by := m.multiple(w)
	if by > 1<<20 || factor > 1<<20 || factor < -(1<<20) {
		by = 0
	}
	return word{m.q.get(key, of, word{}, by*factor), 0}
}
