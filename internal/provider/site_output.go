package provider

// outputs tells which quantities point into the array that the third argument
// is: the completions.
type outputs struct {
	w *walk
	// not are the joins of which some way does not.
	not map[quantity]bool
}

func outputsOf(w *walk) *outputs {
	o := &outputs{w: w, not: map[quantity]bool{}}
	for changed := true; changed; {
		changed = false
		for q := range w.q.info {
			info := &w.q.info[q]
			if info.kind != kindJoin || o.not[quantity(q)] {
				continue
			}
			bad := len(info.ways) == 0
			for _, way := range info.ways {
				bad = bad || !o.contains(way.word.of)
			}
			if bad {
				o.not[quantity(q)], changed = true, true
			}
		}
		if !w.c.spend(len(w.q.info)) {
			break
		}
	}
	return o
}

func (o *outputs) contains(q quantity) bool { return o.within(q, maxReduce) }

func (o *outputs) within(q quantity, depth int) bool {
	if q == quantityOutput {
		return true
	}
	info := &o.w.q.info[q]
	switch {
	case depth == 0:
		return false
	case info.kind == kindJoin:
		return !o.not[q]
	case info.kind == kindChoice:
		return o.within(info.a.of, depth/2) && o.within(info.b.of, depth/2)
	case info.kind == kindSum:
		return o.within(info.a.of, depth/2) != o.within(info.b.of, depth/2)
	case info.kind == kindStep, info.kind == kindDifference:
		return o.within(info.a.of, depth-1)
	default:
		return false
	}
}

// dominates reports whether every way to block b leads through block a.
func (w *walk) dominates(a, b int) bool {
	if w.dominators == nil {
		w.findDominators()
	}
	for {
		if a == b {
			return true
		}
		if b == 0 || w.dominators[b] == b {
			return false
		}
		b = w.dominators[b]
	}
}

// findDominators is the algorithm of Cooper, Harvey and Kennedy, "A Simple,
// Fast Dominance Algorithm".
func (w *walk) findDominators() {
	g := w.g
	w.dominators = make([]int, len(g.blocks))
	for i := range w.dominators {
		w.dominators[i] = -1
	}
	w.dominators[0] = 0
	for changed := true; changed; {
		changed = false
		for _, b := range g.order[1:] {
			best := -1
			for _, p := range g.blocks[b].before {
				switch {
				case w.dominators[p] < 0:
				case best < 0:
					best = p
				default:
					best = w.common(best, p)
				}
			}
			if best != w.dominators[b] {
				w.dominators[b], changed = best, true
			}
		}
	}
}

func (w *walk) common(a, b int) int {
	for a != b && w.c.spend(1) {
		for w.g.rank[a] > w.g.rank[b] {
			a = w.dominators[a]
		}
		for w.g.rank[b] > w.g.rank[a] {
			b = w.dominators[b]
		}
	}
	return a
}

// lockstep relates pointers into the array to the number of completions: it
// proves that a pointer is the array plus 48 times a count plus a constant,
// at every turn of every loop.
type lockstep struct {
	w *walk
	o *outputs
	// assumed are the claims under proof: a claim may rest on itself one turn
	// earlier.
	assumed map[claim]bool
	tried   map[[2]quantity]bool
	known   map[[2]word]proof
	// bound asks for a lower bound instead of equality.
	bound bool
}

type claim struct {
	pointer, count quantity
	offset         int64
}

type proof struct {
	offset int64
	ok     bool
}

func newLockstep(w *walk, o *outputs) *lockstep {
	return &lockstep{w: w, o: o, known: map[[2]word]proof{}}
}

// offset returns pointer - array - 48*count, where that is constant.
func (l *lockstep) offset(pointer, count word) (int64, bool) {
	key := [2]word{pointer, count}
	if p, ok := l.known[key]; ok {
		return p.offset, p.ok
	}
	l.tried = map[[2]quantity]bool{}
	offset, ok := l.guess(pointer, count, maxReduce)
	if ok {
		l.assumed = map[claim]bool{}
		l.bound = false
		ok = l.verify(pointer, count, offset, maxReduce)
	}
	l.known[key] = proof{offset, ok}
	return offset, ok
}

// atLeast reports whether pointer - array - 48*count never is below want.
func (l *lockstep) atLeast(pointer, count word, want int64) bool {
	l.assumed = map[claim]bool{}
	l.bound = true
	return l.verify(pointer, count, want, maxReduce)
}

// split resolves what needs no way into a join: the array itself, or a sum of
// it and a multiple of the count.
func (l *lockstep) split(pointer, count word) (offset int64, known, possible bool) {
	if pointer.of == quantityOutput {
		return pointer.add - sizeofWC*count.add, count.of == quantityConstant, count.of == quantityConstant || l.isJoin(count.of)
	}
	info := &l.w.q.info[pointer.of]
	if info.kind != kindSum {
		return 0, false, l.isJoin(pointer.of) || l.isJoin(count.of)
	}
	array, index := info.a, info.b
	if !l.o.contains(array.of) {
		array, index = index, array
	}
	scaled := &l.w.q.info[index.of]
	if array.of != quantityOutput || scaled.kind != kindScaled || scaled.scale != sizeofWC {
		return 0, false, false
	}
	from := l.w.q.reduce(scaled.a)
	if from.of != count.of {
		return 0, false, l.isJoin(count.of)
	}
	return pointer.add + array.add + index.add + sizeofWC*(from.add-count.add), true, true
}

func (l *lockstep) isJoin(q quantity) bool { return l.w.q.info[q].kind == kindJoin }

// ways pairs what comes into the joins of pointer and count.
func (l *lockstep) ways(pointer, count quantity) (pairs [][2]word, ok bool) {
	p, c := &l.w.q.info[pointer], &l.w.q.info[count]
	pBlock, cBlock := l.block(pointer), l.block(count)
	switch {
	case pBlock >= 0 && pBlock == cBlock:
		for i := range p.ways {
			if i >= len(c.ways) || p.ways[i].from != c.ways[i].from {
				return nil, false
			}
			pairs = append(pairs, [2]word{p.ways[i].word, c.ways[i].word})
		}
	case pBlock >= 0 && (cBlock < 0 || l.w.dominates(cBlock, pBlock)):
		for _, way := range p.ways {
			pairs = append(pairs, [2]word{way.word, {count, 0}})
		}
	case cBlock >= 0 && (pBlock < 0 || l.w.dominates(pBlock, cBlock)):
		for _, way := range c.ways {
			pairs = append(pairs, [2]word{{pointer, 0}, way.word})
		}
	}
	return pairs, len(pairs) > 0
}

// block is where a join is, -1 for what is no join.
func (l *lockstep) block(q quantity) int {
	if !l.isJoin(q) {
		return -1
	}
	b, ok := l.w.g.at[l.w.q.info[q].at]
	if !ok {
		return -1
	}
	return b
}

// guess finds the constant by going back to where everything begins.
func (l *lockstep) guess(pointer, count word, depth int) (int64, bool) {
	count = l.w.q.reduce(count)
	offset, known, possible := l.split(pointer, count)
	if known || !possible {
		return offset, known
	}
	key := [2]quantity{pointer.of, count.of}
	pairs, ok := l.ways(pointer.of, count.of)
	if !ok || depth == 0 || l.tried[key] || !l.w.c.spend(1) {
		return 0, false
	}
	l.tried[key] = true
	for _, pair := range pairs {
		if offset, ok := l.guess(pair[0], pair[1], depth-1); ok {
			return offset + pointer.add - sizeofWC*count.add, true
		}
	}
	return 0, false
}

// verify checks the constant for every way into every join.
func (l *lockstep) verify(pointer, count word, want int64, depth int) bool {
	count = l.w.q.reduce(count)
	offset, known, possible := l.split(pointer, count)
	if known || !possible {
		return known && (offset == want || l.bound && offset > want)
	}
	want -= pointer.add - sizeofWC*count.add
	key := claim{pointer.of, count.of, want}
	if l.assumed[key] || l.bound && l.weaker(key) {
		return true
	}
	pairs, ok := l.ways(pointer.of, count.of)
	if !ok || depth == 0 || !l.w.c.spend(1) {
		return false
	}
	l.assumed[key] = true
	for _, pair := range pairs {
		if !l.verify(pair[0], pair[1], want, depth-1) {
			return false
		}
	}
	return true
}

// weaker reports whether a claim follows from one that is assumed.
func (l *lockstep) weaker(c claim) bool {
	for have := range l.assumed {
		if have.pointer == c.pointer && have.count == c.count && have.offset >= c.offset {
			return true
		}
	}
	return false
}
