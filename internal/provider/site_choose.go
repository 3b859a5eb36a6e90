package provider

// event is something that happens once for each completion: a step of the
// count becomes certain in a block.
type event struct {
	block int
	// count is the number of completions delivered before.
	count word
	// total says that count is that, not another number that goes along; alone
	// that nothing is added to it afterwards.
	total, alone bool
	// passed are the edges over which the next turn begins.
	passed map[[2]int]bool
}

// siteCandidate is one instruction at which a probe for an event may stand.
type siteCandidate struct {
	site  Site
	score int
}

// chooser picks an instruction for each event.
type chooser struct {
	w *walk
	o *outputs
	l *lockstep
	f *fields
	// cqes tells where the entries are that completions were made of.
	cqes *cqeReads
}

// maxOverrides bounds the members that a probe takes from elsewhere.
const maxOverrides = 4

// group lists the blocks that run exactly when the block does: those before
// and after it in a straight line.
func (c *chooser) group(block int) []int {
	g := c.w.g
	group := []int{block}
	for b := block; len(g.blocks[b].after) == 1 && len(group) < 32; {
		next := g.blocks[b].after[0]
		if len(g.blocks[next].before) != 1 || next == 0 || next == block {
			break
		}
		group = append(group, next)
		b = next
	}
	for b := block; b != 0 && len(g.blocks[b].before) == 1 && len(group) < 64; {
		previous := g.blocks[b].before[0]
		if len(g.blocks[previous].after) != 1 || previous == group[len(group)-1] || previous == block {
			break
		}
		group = append([]int{previous}, group...)
		b = previous
	}
	return group
}

// choose returns the best instruction for an event, and the best one that is
// no call.
func (c *chooser) choose(e event) (Site, bool) {
	var best, calm *siteCandidate
	group := c.group(e.block)
	for _, b := range group {
		state := c.w.in[b].clone()
		for i, s := range c.w.g.blocks[b].steps {
			if candidate, ok := c.candidate(e, group, b, i, s, state); ok {
				if best == nil || candidate.score > best.score {
					best = candidate
				}
				if !candidate.site.IsCall && (calm == nil || candidate.score > calm.score) {
					calm = candidate
				}
			}
			c.w.machine.execute(s, state)
		}
	}
	if best == nil {
		return Site{}, false
	}
	if best.site.IsCall && calm != nil {
		instead := calm.site
		best.site.Instead = &instead
	}
	return best.site, true
}

// candidate judges one instruction.
func (c *chooser) candidate(e event, group []int, b, i int, s *step, state *machineState) (*siteCandidate, bool) {
	offset, ok := c.w.c.a.img.fileOffset(s.address)
	if s.cost == costRefused || s.repeats || !ok {
		return nil, false
	}
	site := Site{Function: PollCQ, Offset: offset, IsCall: s.flow == flowCall}
	site.Emulated = s.cost == costEmulated || site.IsCall && s.direct
	site.LongNop = s.cost == costLongNop
	held := c.w.holders(state)
	site.CQ = argumentLocation(held, quantityQueue)
	if e.total {
		site.WC, site.Proven = c.l.completionLocation(held, e.count, e.alone)
		site.CQE = c.cqes.location(b, i, held, e.count)
	}
	if !site.Proven {
		site.WC, _ = c.l.inferredLocation(held, c.f)
	}
	straight, elsewhere := c.f.remaining(group, b, i, e.passed, func(f *fieldStore) bool { return c.mine(f, e.count) })
	site.Complete = !elsewhere && site.WC.Known()
	for n := range straight {
		o, ok := c.override(&straight[n], group, b, i, e.count)
		if !ok || len(site.Overrides) == maxOverrides {
			site.Complete, site.Overrides = false, nil
			break
		}
		site.Overrides = append(site.Overrides, o)
	}
	return &siteCandidate{site: site, score: score(&site)}, true
}

func score(s *Site) int {
	n := 0
	if s.WC.Known() {
		n += 32
	}
	if s.Complete {
		n += 32 - 3*len(s.Overrides)
	}
	switch {
	case s.Emulated && !s.IsCall:
		n += 16
	case s.Emulated:
		n += 12
	case s.LongNop:
		n += 2
	}
	if s.CQ.Known() {
		n += 8
	}
	if s.WC.Counter.Kind == PlaceNone {
		n++
	}
	return n
}

// mine reports whether a store may be into the completion of the event, not
// into the next one.
func (c *chooser) mine(f *fieldStore, count word) bool {
	if at, ok := c.l.offset(f.at, count); ok {
		return at < sizeofWC && at+int64(f.size) > 0
	}
	return !c.l.atLeast(f.at, count, sizeofWC)
}

// override turns a store that is still to come into a member that the probe
// takes from where the store will.
func (c *chooser) override(f *fieldStore, group []int, b, i int, count word) (FieldOverride, bool) {
	at, ok := c.l.offset(f.at, count)
	if !ok {
		at = f.at.add - sizeofWC*floorDivide(f.at.add, sizeofWC)
	}
	o := FieldOverride{Offset: uint8(at), Size: uint8(f.size)}
	if at < 0 || at+int64(f.size) > sizeofWC || f.size > 8 {
		return o, false
	}
	if f.stored.of == quantityConstant {
		o.Constant = f.stored.add
		return o, true
	}
	if f.value == noRegister || !c.untouched(f.value, group, b, i, f) {
		return o, false
	}
	o.From = Place{Kind: PlaceRegister, Register: uint8(f.value)}
	return o, true
}

// untouched reports whether a register keeps its content from an instruction
// to a store later in the group.
func (c *chooser) untouched(r register, group []int, b, i int, f *fieldStore) bool {
	for ; len(group) > 0 && group[0] != b; group = group[1:] {
		continue
	}
	for _, at := range group {
		steps := c.w.g.blocks[at].steps
		for ; i < len(steps); i++ {
			if at == f.block && i == f.index {
				return true
			}
			if steps[i].writes(r) {
				return false
			}
		}
		i = 0
	}
	return false
}
