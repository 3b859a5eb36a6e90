package provider

// Bounds on following values backwards.
const (
	maxValues = 16
	maxSteps  = 200_000
	maxNested = 32
)

// origin says what a value is made of.
type origin uint8

const (
	unknownValue origin = iota
	// constantValue is the number add.
	constantValue
	// argumentValue is what the register held at the entry of the function,
	// plus add.
	argumentValue
	// memoryValue is what was read from memory, plus add. at says from where,
	// if that is known.
	memoryValue
	// importValue is the address of a function of another file.
	importValue
)

// value is one possible content of a register.
type value struct {
	origin   origin
	register register
	add      int64
	// For memoryValue: the address read is that of the base (a constant or an
	// argument) plus at; base is unknownValue when it is not known.
	base origin
	at   int64
	// name of the import.
	name string
}

// plus adds a number.
func (v value) plus(n int64) value {
	if v.origin == unknownValue || v.origin == importValue && n != 0 {
		return value{}
	}
	v.add += n
	return v
}

// evaluator follows values backwards through one function.
type evaluator struct {
	f     *function
	stack register
	// load says what the file knows of the 8 bytes at an address.
	load  func(address uint64) (value, bool)
	spend func(n int) bool
	steps int
	// seen holds the joins visited for the present question: a second visit
	// could only find the same values again. nested counts the questions that
	// wait for this one.
	seen   map[question]bool
	nested int
}

// place is what can hold a value: a register, or 8 bytes of the stack frame
// at an offset from the stack pointer, as long as that does not move.
type place struct {
	register register
	spilled  bool
	offset   int64
}

type question struct {
	place  place
	before int32
}

// values returns everything the register may hold just before the
// instruction with the index. An unknown among them means that there may be
// more.
func (a *analysis) values(f *function, r register, index int) []value {
	return a.evaluator(f).place(nil, place{register: r}, index)
}

func (a *analysis) evaluator(f *function) *evaluator {
	return &evaluator{f: f, stack: a.cpu.stack, load: a.loaded, spend: a.spend, seen: map[question]bool{}}
}

// place collects the values of a place before the instruction.
func (e *evaluator) place(found []value, p place, index int) []value {
	for {
		if e.steps++; e.steps > maxSteps || !e.spend(1) || p.register == noRegister {
			return include(found, value{})
		}
		before := e.f.before[index]
		if index == 0 {
			found = include(found, atEntry(p))
		}
		if len(before) == 0 {
			if index != 0 {
				// Reached by means that are not understood (a jump table).
				found = include(found, value{})
			}
			return found
		}
		if len(before) > 1 || index == 0 {
			return e.join(found, p, index)
		}
		index = int(before[0])
		if changes(&e.f.instructions[index], p) {
			return e.written(found, p, index)
		}
	}
}

// atEntry is what a place holds when the function is entered.
func atEntry(p place) value {
	if p.spilled {
		return value{}
	}
	return value{origin: argumentValue, register: p.register}
}

// changes reports whether the instruction writes the place. A write through a
// pointer is taken to leave spilled registers alone: compilers do not take
// their addresses.
func changes(in *instruction, p place) bool {
	if in.writes(p.register) {
		return true
	}
	if !p.spilled {
		return false
	}
	for _, s := range in.stores[:in.numStores] {
		if s.base == p.register && s.offset > p.offset-8 && s.offset < p.offset+8 {
			return true
		}
	}
	return false
}

// join collects the values over all the ways into an instruction.
func (e *evaluator) join(found []value, p place, index int) []value {
	q := question{p, int32(index)}
	if e.seen[q] {
		return found
	}
	e.seen[q] = true
	for _, b := range e.f.before[index] {
		if changes(&e.f.instructions[b], p) {
			found = e.written(found, p, int(b))
		} else {
			found = e.place(found, p, int(b))
		}
	}
	return found
}

// written collects what the instruction leaves in the place.
func (e *evaluator) written(found []value, p place, index int) []value {
	in := &e.f.instructions[index]
	if p.spilled {
		for _, s := range in.stores[:in.numStores] {
			if s.base == p.register && s.offset == p.offset && !in.writes(p.register) {
				return e.place(found, place{register: s.value}, index)
			}
		}
		return include(found, value{})
	}
	if in.clobbers.has(p.register) {
		return include(found, value{})
	}
	for _, a := range in.sets[:in.numSets] {
		if a.to == p.register {
			return e.source(found, a.from, index)
		}
	}
	return include(found, value{})
}

// source collects the values of a source, read by the instruction.
func (e *evaluator) source(found []value, s source, index int) []value {
	switch s.kind {
	case sourceConstant:
		return include(found, value{origin: constantValue, add: s.offset})
	case sourceSum:
		for _, v := range e.ask(s.base, index) {
			found = include(found, v.plus(s.offset))
		}
		return found
	case sourceChoice:
		for _, r := range []register{s.base, s.other} {
			for _, v := range e.ask(r, index) {
				found = include(found, v)
			}
		}
		return found
	case sourceLoad:
		if s.base == noRegister {
			return include(found, e.loaded(value{origin: constantValue, add: s.offset}))
		}
		if s.base == e.stack {
			return e.place(found, place{register: s.base, spilled: true, offset: s.offset}, index)
		}
		for _, v := range e.ask(s.base, index) {
			found = include(found, e.loaded(v.plus(s.offset)))
		}
		return found
	default:
		return include(found, value{})
	}
}

// ask answers a question of its own: its values are changed afterwards, so it
// shares neither the list nor the visits of the one that waits for it.
func (e *evaluator) ask(r register, index int) []value {
	if e.nested == maxNested {
		return []value{{}}
	}
	outer := e.seen
	e.seen = map[question]bool{}
	e.nested++
	found := e.place(nil, place{register: r}, index)
	e.nested--
	e.seen = outer
	return found
}

// loaded is what is read from the address.
func (e *evaluator) loaded(at value) value {
	switch at.origin {
	case constantValue:
		if v, ok := e.load(uint64(at.add)); ok {
			return v
		}
		return value{origin: memoryValue, base: constantValue, at: at.add}
	case argumentValue:
		return value{origin: memoryValue, base: argumentValue, register: at.register, at: at.add}
	default:
		return value{origin: memoryValue}
	}
}

// include adds a value to the set.
func include(found []value, v value) []value {
	if len(found) >= maxValues {
		v = value{}
	}
	for _, have := range found {
		if have == v {
			return found
		}
	}
	return append(found, v)
}
