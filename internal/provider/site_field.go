package provider

// fieldStore is a store into a completion.
type fieldStore struct {
	block, index int
	at           word
	size         int
	value        register
	stored       word
}

// handover is a call of a local function that gets a pointer into the array.
type handover struct {
	block, index int
	at           word
}

// fields are all writes through the third argument.
type fields struct {
	w         *walk
	stores    map[[2]int][]fieldStore
	handovers map[[2]int]handover
}

func fieldsOf(w *walk, o *outputs, web *web) *fields {
	counted := map[uint64]bool{}
	for _, call := range web.calls {
		counted[w.q.info[call].at] = true
	}
	f := &fields{w: w, stores: map[[2]int][]fieldStore{}, handovers: map[[2]int]handover{}}
	var block, index int
	w.machine.wrote = func(_ *step, m memoryAccess) {
		if !o.contains(m.at.of) {
			return
		}
		key := [2]int{block, index}
		f.stores[key] = append(f.stores[key], fieldStore{block, index, m.at, m.size, m.value, m.stored})
	}
	w.eachStep(func(b, i int, s *step, state *machineState) {
		block, index = b, i
		// What a call delivers and counts itself is another completion.
		if s.flow != flowCall || counted[s.address] {
			return
		}
		local, imported := w.c.callee(s)
		passed := w.c.a.cpu.passed
		switch {
		case writesFirst(imported):
			passed = passed[:1]
		case local == 0 && imported != "":
			// Of others (locks, logs) none is given a completion; their unused
			// argument registers may still hold one.
			return
		}
		for _, r := range passed {
			if o.contains(state.register(r).of) {
				f.handovers[[2]int{b, i}] = handover{b, i, state.register(r)}
			}
		}
	})
	w.machine.wrote = nil
	return f
}

// remaining is what may still be written between an instruction and the next
// turn of the loop: stores in the order of the straight line from the
// instruction on, and whether there is anything elsewhere.
func (f *fields) remaining(group []int, block, index int, passed map[[2]int]bool, mine func(*fieldStore) bool) (straight []fieldStore, elsewhere bool) {
	w := f.w
	inGroup := map[int]bool{}
	for _, b := range group {
		inGroup[b] = true
	}
	seen := map[int]bool{}
	type start struct{ block, index int }
	queue := []start{{block, index}}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		steps := w.g.blocks[at.block].steps
		if !w.c.spend(len(steps)) {
			return nil, true
		}
		for i := at.index; i < len(steps); i++ {
			key := [2]int{at.block, i}
			for _, s := range f.stores[key] {
				if !mine(&s) {
					continue
				}
				if !inGroup[at.block] {
					elsewhere = true
				}
				straight = append(straight, s)
			}
			if _, ok := f.handovers[key]; ok {
				elsewhere = true
			}
		}
		for _, next := range w.g.blocks[at.block].after {
			if !passed[[2]int{at.block, next}] && !seen[next] && next != block {
				seen[next] = true
				queue = append(queue, start{next, 0})
			}
		}
	}
	return straight, elsewhere
}

// writesFirst lists the imports that write where their first argument points.
func writesFirst(imported string) bool {
	switch imported {
	case "memcpy", "memmove", "memset", "__memcpy_chk", "__memmove_chk", "__memset_chk":
		return true
	default:
		return false
	}
}
