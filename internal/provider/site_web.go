package provider

// sign is how a quantity takes part in the result of a function.
type sign uint8

const (
	positive sign = 1 << iota
	negative
)

func (s sign) flipped() sign {
	var out sign
	if s&positive != 0 {
		out |= negative
	}
	if s&negative != 0 {
		out |= positive
	}
	return out
}

// web is everything that the result of a function is made of. What counts
// completions is in it by construction: the result is their number.
type web struct {
	w       *walk
	members map[quantity]sign
	// steps are the members that count, calls those that a call returned.
	steps, calls []quantity
	// ones are edges over which the number 1 is added.
	ones [][2]int
	// strange are the addresses of instructions whose unknown results are
	// added.
	strange []uint64
	// direct are the members that are returned without anything added, summed
	// those to which something is added first. A member may be both.
	direct, summed map[quantity]bool
}

// maxWeb bounds the members of a web.
const maxWeb = 1 << 14

// webOf collects the web of a function's result.
func webOf(w *walk) *web {
	web := &web{w: w, members: map[quantity]sign{}, direct: map[quantity]bool{}, summed: map[quantity]bool{}}
	for b := range w.g.blocks {
		blk := &w.g.blocks[b]
		if blk.returns && w.out[b] != nil {
			web.add(w.out[b].register(w.c.a.cpu.result))
		}
	}
	return web
}

func (web *web) add(w word) {
	type item struct {
		word   word
		sign   sign
		direct bool
	}
	queue := []item{{w, positive, true}}
	for len(queue) > 0 && len(web.members) < maxWeb && web.w.c.spend(1) {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		q := at.word.of
		if web.members[q]&at.sign == at.sign && (web.direct[q] || !at.direct) && (web.summed[q] || at.direct) {
			continue
		}
		fresh := web.members[q] == 0
		web.members[q] |= at.sign
		web.direct[q] = web.direct[q] || at.direct
		web.summed[q] = web.summed[q] || !at.direct
		info := &web.w.q.info[q]
		if at.word.add != 0 && (info.kind == kindJoin || info.kind == kindStep || info.kind == kindSum) {
			web.strange = append(web.strange, info.at)
		}
		switch info.kind {
		case kindStep:
			if fresh {
				web.steps = append(web.steps, q)
			}
			queue = append(queue, item{info.a, at.sign, at.direct})
		case kindJoin:
			for _, way := range info.ways {
				queue = append(queue, item{way.word, at.sign, at.direct})
				if to, ok := web.w.g.at[info.at]; ok && way.word == number(1) && !at.direct && at.sign == positive {
					web.ones = append(web.ones, [2]int{way.from, to})
				}
			}
		case kindChoice:
			queue = append(queue, item{info.a, at.sign, at.direct}, item{info.b, at.sign, at.direct})
		case kindSum:
			queue = append(queue, item{info.a, at.sign, false}, item{info.b, at.sign, false})
		case kindDifference:
			queue = append(queue, item{info.a, at.sign, false}, item{info.b, at.sign.flipped(), false})
		case kindCall:
			if fresh {
				web.calls = append(web.calls, q)
			}
		case kindResult, kindScaled, kindAligned:
			if !at.direct && fresh {
				web.strange = append(web.strange, info.at)
			}
		}
	}
}

// total reports whether what a step counts is the number of completions
// delivered so far: it begins at 0, goes up, and is returned as it is.
func (web *web) total(step quantity) bool {
	if !web.direct[step] || web.members[step] != positive {
		return false
	}
	seen := map[quantity]bool{}
	queue := []word{{step, 0}}
	for len(queue) > 0 && web.w.c.spend(1) {
		w := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if w.of == quantityConstant {
			if w.add != 0 {
				return false
			}
			continue
		}
		if seen[w.of] {
			continue
		}
		seen[w.of] = true
		switch info := &web.w.q.info[w.of]; {
		case w.add != 0:
			return false
		case info.kind == kindStep && info.scale > 0:
			queue = append(queue, info.a)
		case info.kind == kindJoin:
			for _, way := range info.ways {
				queue = append(queue, way.word)
			}
		default:
			return false
		}
	}
	return true
}

// deliveries are the steps that make the result greater: one for each
// completion. Steps that make it smaller are given back in undone.
func (web *web) deliveries() (found []quantity, undone bool) {
	for _, q := range web.steps {
		if !web.counts(q) {
			continue
		}
		up := web.w.q.info[q].scale > 0
		s := web.members[q]
		switch {
		case s == positive && up, s == negative && !up:
			found = append(found, q)
		default:
			undone = true
		}
	}
	return found, undone
}

// counts reports whether a step goes on from a count: from 0, from the number
// asked for, or from what a call returned. Others only compute something.
func (web *web) counts(step quantity) bool {
	seen := map[quantity]bool{}
	queue := []word{{step, 0}}
	for len(queue) > 0 && web.w.c.spend(1) {
		w := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if w.of == quantityConstant && w.add > 0 {
			return false
		}
		if seen[w.of] || w.of == quantityConstant || w.of == quantityCount {
			continue
		}
		seen[w.of] = true
		switch info := &web.w.q.info[w.of]; info.kind {
		case kindStep:
			queue = append(queue, info.a)
		case kindJoin:
			for _, way := range info.ways {
				queue = append(queue, way.word)
			}
		case kindChoice, kindSum, kindDifference:
			queue = append(queue, info.a, info.b)
		case kindCall:
		default:
			return false
		}
	}
	return true
}

// outcome is what may become of a step: its result is used, or what was
// before it.
type outcome uint8

const (
	usesNew outcome = 1 << iota
	usesOld
)

// commitment tells for each block whether from its start on the result of a
// step is certain to be used. A compiler may compute n+1 before it is known
// whether there is a completion.
type commitment struct {
	web      *web
	step     quantity
	at       []outcome
	edgeUses map[[2]int]outcome
}

func (web *web) commitment(step quantity) *commitment {
	c := &commitment{web: web, step: step, at: make([]outcome, len(web.w.g.blocks)), edgeUses: map[[2]int]outcome{}}
	c.collectEdges()
	for changed := true; changed; {
		changed = false
		for r := len(web.w.g.order) - 1; r >= 0; r-- {
			b := web.w.g.order[r]
			o := c.after(b)
			if o != c.at[b] {
				c.at[b], changed = o, true
			}
		}
		if !web.w.c.spend(len(web.w.g.order)) {
			break
		}
	}
	return c
}

// collectEdges finds the edges over which members of the web meet.
func (c *commitment) collectEdges() {
	w := c.web.w
	for q := range c.web.members {
		info := &w.q.info[q]
		if info.kind != kindJoin {
			continue
		}
		to, ok := w.g.at[info.at]
		if !ok {
			continue
		}
		for _, way := range info.ways {
			c.edgeUses[[2]int{way.from, to}] |= c.of(way.word, maxReduce)
		}
	}
}

// passed are the edges behind which the completion is one of those delivered
// before: its count meets others there.
func (c *commitment) passed() map[[2]int]bool {
	w := c.web.w
	own := w.q.reduce(word{c.step, 0})
	found := map[[2]int]bool{}
	for q := range c.web.members {
		info := &w.q.info[q]
		to, ok := w.g.at[info.at]
		if info.kind != kindJoin || !ok || w.q.reduce(word{q, 0}) == own {
			continue
		}
		for _, way := range info.ways {
			if c.of(way.word, maxReduce)&usesNew != 0 {
				found[[2]int{way.from, to}] = true
			}
		}
	}
	return found
}

// of says which of the two a word contains.
func (c *commitment) of(w word, depth int) outcome {
	q := c.web.w.q
	counted, have := q.reduce(word{c.step, 0}), q.reduce(w)
	switch {
	case have.of == counted.of && (have.add-counted.add)*q.info[c.step].scale >= 0:
		return usesNew
	case have.of == counted.of:
		return usesOld
	case depth == 0:
		return 0
	}
	switch inner := &q.info[w.of]; inner.kind {
	case kindStep:
		return c.of(inner.a, depth-1)
	case kindChoice, kindSum, kindDifference:
		return c.of(inner.a, depth/2) | c.of(inner.b, depth/2)
	default:
		return 0
	}
}

// after is what may happen from the end of a block on.
func (c *commitment) after(b int) outcome {
	w := c.web.w
	blk := &w.g.blocks[b]
	if blk.returns && w.out[b] != nil {
		return c.of(w.out[b].register(w.c.a.cpu.result), maxReduce)
	}
	var o outcome
	for _, next := range blk.after {
		if used := c.edgeUses[[2]int{b, next}]; used != 0 {
			o |= used
		} else {
			o |= c.at[next]
		}
	}
	return o
}

// frontier returns the blocks where the step becomes certain, together
// entered once for each time that it counts; false when there are none such.
func (c *commitment) frontier() ([]int, bool) {
	w := c.web.w
	start, _, ok := w.position(w.q.info[c.step].at)
	if !ok {
		return nil, false
	}
	if c.at[start]&usesOld == 0 {
		return []int{start}, true
	}
	inside := map[int]bool{start: true}
	var found []int
	queue := []int{start}
	for len(queue) > 0 {
		b := queue[0]
		queue = queue[1:]
		for _, next := range w.g.blocks[b].after {
			if used := c.edgeUses[[2]int{b, next}]; used != 0 {
				// The last chance was before this edge.
				if used&usesNew != 0 {
					return nil, false
				}
				continue
			}
			if inside[next] {
				continue
			}
			inside[next] = true
			switch c.at[next] {
			case usesNew:
				found = append(found, next)
			case 0, usesOld:
			default:
				queue = append(queue, next)
			}
		}
	}
	for _, b := range found {
		for _, p := range w.g.blocks[b].before {
			if !inside[p] {
				return nil, false
			}
		}
	}
	return found, len(found) > 0
}

// position finds an instruction in the blocks.
func (w *walk) position(address uint64) (b, index int, ok bool) {
	if w.positions == nil {
		w.positions = map[uint64][2]int{}
		for b := range w.g.blocks {
			for i, s := range w.g.blocks[b].steps {
				w.positions[s.address] = [2]int{b, i}
			}
		}
	}
	at, ok := w.positions[address]
	return at[0], at[1], ok
}
