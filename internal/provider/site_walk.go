package provider

import "fmt"

// walk is the abstract execution of one function: what every register and
// slot holds at every block, as words.
type walk struct {
	c       *codeMap
	machine machine
	q       *quantities
	g       *graph
	in, out []*machineState
	// joins are the cells that hold something else after a turn of a loop;
	// dropped are slots that are gone after one.
	joins, dropped map[joinKey]bool
	entry          *machineState
	positions      map[uint64][2]int
	// equal are the edges on which two words are known to be equal, with what
	// is known there.
	equal      map[[2]int]*machineState
	dominators []int
}

type joinKey struct {
	block uint64
	cell  cell
}

// newWalk prepares the execution of a function from a state.
func newWalk(c *codeMap, entry *machineState, q *quantities) *walk {
	return &walk{
		c: c, q: q, entry: entry,
		machine: machine{cpu: c.a.cpu, q: q, escaped: map[cell]bool{}},
		joins:   map[joinKey]bool{}, dropped: map[joinKey]bool{},
	}
}

// entryState is the state in which a function is called.
func entryState(cpu *processor, q *quantities) *machineState {
	s := &machineState{slots: map[cell]slot{}}
	for r := range s.registers {
		s.registers[r] = word{q.get(quantityKey{kind: kindResult, part: r}, word{}, word{}, 0), 0}
	}
	s.registers[cpu.stack] = word{quantityStack, 0}
	s.registers[cpu.arguments[0]] = word{quantityQueue, 0}
	s.registers[cpu.arguments[1]] = word{quantityCount, 0}
	s.registers[cpu.arguments[2]] = word{quantityOutput, 0}
	return s
}

// maxRounds bounds how often jump tables found lead to more of them.
const maxRounds = 24

// run explores and executes the function, again as long as that shows more of
// its control flow.
func (w *walk) run(entry uint64) error {
	known := &knownFlow{tables: map[uint64][]uint64{}, always: map[uint64]bool{}, never: map[uint64]bool{}}
	for range maxRounds {
		g, err := w.c.explore(entry, known)
		if err != nil {
			return err
		}
		w.g, w.positions, w.dominators = g, nil, nil
		clear(w.joins)
		clear(w.dropped)
		if err := w.settle(); err != nil {
			return err
		}
		found := w.decide(known)
		for _, jump := range g.unresolved {
			if targets := w.table(jump); len(targets) > 0 {
				known.tables[jump.address] = targets
				found = true
			}
		}
		if !found {
			w.record()
			return nil
		}
	}
	return fmt.Errorf("%w: its control flow does not come to an end", ErrTooLarge)
}

// decide finds branches on whether the third argument is NULL: it is not, by
// the contract of ibv_poll_cq and ibv_post_send.
func (w *walk) decide(known *knownFlow) bool {
	found := false
	for b := range w.g.blocks {
		steps := w.g.blocks[b].steps
		last := len(steps) - 1
		branch := steps[last]
		if w.in[b] == nil || !branch.onZero && !branch.onNonzero || known.always[branch.address] || known.never[branch.address] {
			continue
		}
		test := w.flagsOf(b)
		tested := steps[test]
		if tested.tests.kind == operandNone || w.machine.operand(tested, 0, tested.tests, w.before(b, test)) != (word{quantityOutput, 0}) {
			continue
		}
		found = true
		if branch.onZero {
			known.never[branch.address] = true
		} else {
			known.always[branch.address] = true
		}
	}
	return found
}

// flagsOf is the index of the step that sets the flags which the branch at the
// end of a block looks at: the branch itself if that is not in the block.
func (w *walk) flagsOf(b int) int {
	steps := w.g.blocks[b].steps
	last := len(steps) - 1
	if steps[last].tests.kind != operandNone {
		return last
	}
	for i := last - 1; i >= 0; i-- {
		if !steps[i].keepsFlags {
			return i
		}
	}
	return last
}

// compare notes on which edge from a block two words are equal. Where a loop
// ends because the count has reached a number, compilers go on with that
// number instead of the count.
func (w *walk) compare(b int) {
	for _, next := range w.g.blocks[b].after {
		delete(w.equal, [2]int{b, next})
	}
	steps := w.g.blocks[b].steps
	branch := steps[len(steps)-1]
	compared := steps[w.flagsOf(b)]
	if !branch.onZero && !branch.onNonzero || compared.compares[0].kind == operandNone || branch.target == branch.end() {
		return
	}
	to := branch.target
	if branch.onNonzero {
		to = branch.end()
	}
	next, ok := w.g.at[to]
	if !ok {
		return
	}
	state := w.before(b, w.flagsOf(b))
	first := w.machine.operand(compared, 0, compared.compares[0], state)
	second := w.machine.operand(compared, 1, compared.compares[1], state)
	if w.counted(first) {
		first, second = second, first
	}
	if kind := w.q.info[first.of].kind; !w.counted(second) || kind != kindResult && kind != kindDifference {
		return
	}
	equal := w.out[b].clone()
	for r, have := range equal.registers {
		if have.of == first.of {
			equal.registers[r] = second.plus(have.add - first.add)
		}
	}
	for c, have := range equal.slots {
		if have.word.of == first.of {
			equal.slots[c] = slot{second.plus(have.word.add - first.add), have.size}
		}
	}
	w.equal[[2]int{b, next}] = equal
}

// counted reports whether a word may be a count.
func (w *walk) counted(of word) bool {
	kind := w.q.info[of.of].kind
	return kind == kindStep || kind == kindJoin || of.of == quantityConstant
}

// over is what is known after one block on the way to another.
func (w *walk) over(from, to int) *machineState {
	if state := w.equal[[2]int{from, to}]; state != nil {
		return state
	}
	return w.out[from]
}

// settle executes all blocks until nothing changes any more. It begins with
// the hope that a loop changes nothing and gives up on a cell where it does;
// so it ends with the fewest joins.
func (w *walk) settle() error {
	w.in = make([]*machineState, len(w.g.blocks))
	w.out = make([]*machineState, len(w.g.blocks))
	w.equal = map[[2]int]*machineState{}
	for from := 0; from < len(w.g.order); {
		for rank := from; rank < len(w.g.order); rank++ {
			b := w.g.order[rank]
			w.in[b] = w.enter(b)
			w.out[b] = w.execute(b)
			w.compare(b)
			if !w.c.spend(len(w.g.blocks[b].steps) + 32 + 2*len(w.in[b].slots)) {
				return fmt.Errorf("%w: following its values takes too many steps", ErrTooLarge)
			}
		}
		from = w.contradiction()
	}
	return nil
}

// execute runs a block from its start.
func (w *walk) execute(b int) *machineState {
	state := w.in[b].clone()
	for _, s := range w.g.blocks[b].steps {
		w.machine.execute(s, state)
	}
	return state
}

// enter merges what comes into a block over the edges from blocks before it.
func (w *walk) enter(b int) *machineState {
	var state *machineState
	if b == 0 {
		state = w.entry.clone()
	}
	address := w.g.blocks[b].steps[0].address
	differs := map[cell]bool{}
	for _, p := range w.g.blocks[b].before {
		if w.g.rank[p] >= w.g.rank[b] {
			continue
		}
		if state == nil {
			state = w.over(p, b).clone()
			continue
		}
		merge(state, w.over(p, b), differs)
	}
	if state == nil {
		state = &machineState{slots: map[cell]slot{}}
	}
	for r := range state.registers {
		key := joinKey{address, registerCell(register(r))}
		if differs[key.cell] || w.joins[key] {
			state.registers[r] = w.join(key)
		}
	}
	for c, v := range state.slots {
		key := joinKey{address, c}
		switch {
		case w.dropped[key]:
			delete(state.slots, c)
		case differs[c] || w.joins[key]:
			state.slots[c] = slot{w.join(key), v.size}
		}
	}
	return state
}

// merge notes what differs and drops slots that are not in both.
func merge(state, other *machineState, differs map[cell]bool) {
	for r := range state.registers {
		if state.registers[r] != other.registers[r] {
			differs[registerCell(register(r))] = true
		}
	}
	for c, v := range state.slots {
		o, ok := other.slots[c]
		switch {
		case !ok:
			delete(state.slots, c)
		case o.word != v.word || o.size != v.size:
			differs[c] = true
			state.slots[c] = slot{v.word, min(v.size, o.size)}
		}
	}
}

func (w *walk) join(key joinKey) word {
	return word{w.q.get(quantityKey{kind: kindJoin, at: key.block, cell: key.cell}, word{}, word{}, 0), 0}
}

// contradiction looks for a loop that changes what was taken to be constant,
// and returns the rank of its head, or the number of blocks.
func (w *walk) contradiction() int {
	for rank, b := range w.g.order {
		address := w.g.blocks[b].steps[0].address
		found := false
		for _, p := range w.g.blocks[b].before {
			if w.g.rank[p] < rank {
				continue
			}
			found = w.contradicts(w.in[b], w.over(p, b), address) || found
		}
		if found {
			return rank
		}
	}
	return len(w.g.order)
}

func (w *walk) contradicts(in, out *machineState, address uint64) bool {
	found := false
	for r := range in.registers {
		key := joinKey{address, registerCell(register(r))}
		if in.registers[r] != out.registers[r] && !w.isJoin(in.registers[r], key) && !w.joins[key] {
			w.joins[key] = true
			found = true
		}
	}
	for c, v := range in.slots {
		key := joinKey{address, c}
		o, ok := out.slots[c]
		switch {
		case !ok || o.size < v.size:
			if !w.dropped[key] {
				w.dropped[key] = true
				found = true
			}
		case o.word != v.word && !w.isJoin(v.word, key) && !w.joins[key]:
			w.joins[key] = true
			found = true
		}
	}
	return found
}

// isJoin reports whether the word is that of the join at this place already.
func (w *walk) isJoin(have word, key joinKey) bool {
	if have.add != 0 {
		return false
	}
	info := &w.q.info[have.of]
	return info.kind == kindJoin && info.at == key.block && info.cell == key.cell
}

// record fills in what comes into the joins.
func (w *walk) record() {
	for b := range w.g.blocks {
		if w.in[b] == nil {
			continue
		}
		address := w.g.blocks[b].steps[0].address
		fill := func(c cell, have word) {
			if !w.isJoin(have, joinKey{address, c}) {
				return
			}
			info := &w.q.info[have.of]
			info.ways = info.ways[:0]
			if b == 0 {
				info.ways = append(info.ways, way{-1, w.entry.content(c)})
			}
			for _, p := range w.g.blocks[b].before {
				if w.out[p] != nil {
					info.ways = append(info.ways, way{p, w.over(p, b).content(c)})
				}
			}
		}
		for r := range w.in[b].registers {
			fill(registerCell(register(r)), w.in[b].registers[r])
		}
		for c, v := range w.in[b].slots {
			fill(c, v.word)
		}
	}
}

// content is the word in a cell, of no quantity if it is not known.
func (s *machineState) content(c cell) word {
	if c.stack == noQuantity {
		return s.register(c.register)
	}
	return s.slots[c].word
}

// before is the state before an instruction of a block.
func (w *walk) before(b, index int) *machineState {
	state := w.in[b].clone()
	for _, s := range w.g.blocks[b].steps[:index] {
		w.machine.execute(s, state)
	}
	return state
}

// eachStep calls found with every instruction and the state before it.
func (w *walk) eachStep(found func(b, index int, s *step, state *machineState)) {
	for b := range w.g.blocks {
		if w.in[b] == nil {
			continue
		}
		state := w.in[b].clone()
		for i, s := range w.g.blocks[b].steps {
			found(b, i, s, state)
			w.machine.execute(s, state)
		}
	}
}

// lost are the indirect jumps of which it is not known where they lead, but
// for tail calls: those leave the stack as the caller left it.
func (w *walk) lost() []uint64 {
	var found []uint64
	for _, jump := range w.g.unresolved {
		state, ok := w.stateAt(jump.address)
		if !ok {
			continue
		}
		to := state.register(jump.indirect.base)
		plain := w.q.info[to.of].kind == kindResult || w.q.info[to.of].kind == kindJoin || w.q.info[to.of].kind == kindFixed
		if state.register(w.c.a.cpu.stack) != (word{quantityStack, 0}) || !plain || to.add != 0 {
			found = append(found, jump.address)
		}
	}
	return found
}
