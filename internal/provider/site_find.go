package provider

import (
	"cmp"
	"fmt"
	"slices"
)

// addSites finds the sites of every function of the data path. Failing to is
// no failure of the analysis: the functions can still be probed at their entry.
func (a *analysis) addSites(lib *Library) {
	own := *a
	own.effort, own.notes = 0, nil
	c := newCodeMap(&own)
	c.driver = lib.Name
	for _, t := range lib.Targets {
		if t.Function > PollCQ {
			continue
		}
		address, ok := a.img.address(t.Offset)
		if !ok {
			continue
		}
		var set SiteSet
		if t.Function == PollCQ {
			set = c.completionSites(address)
		} else {
			set = c.failureSites(t.Function, address)
		}
		set.Function, set.FunctionOffset = t.Function, t.Offset
		lib.Sites = append(lib.Sites, set)
	}
}

func none(reason string, arguments ...any) SiteSet {
	return SiteSet{Kind: SitesNone, Reason: fmt.Sprintf(reason, arguments...)}
}

// pollFinder collects the sites of one poll_cq and of the local functions that
// it leaves the delivery to.
type pollFinder struct {
	c     *codeMap
	sites []Site
	// gaps says what is missing, shared who else leads to the sites.
	gaps   []string
	shared string
}

// maxDepth bounds how far into local functions the search goes.
const maxDepth = 3

// completionSites finds the sites of the poll_cq at an address.
func (c *codeMap) completionSites(address uint64) SiteSet {
	f := &pollFinder{c: c}
	q := newQuantities()
	if err := f.function(address, entryState(c.a.cpu, q), q, 0); err != nil {
		return none("%v", err)
	}
	return f.result()
}

func (f *pollFinder) gap(format string, arguments ...any) {
	f.gaps = append(f.gaps, fmt.Sprintf(format, arguments...))
}

// function finds the deliveries of one function called in a state.
func (f *pollFinder) function(address uint64, entry *machineState, q *quantities, depth int) error {
	w := newWalk(f.c, entry, q)
	if err := w.run(address); err != nil {
		return err
	}
	for _, jump := range w.lost() {
		f.gap("where the jump at %#x leads is unknown", jump)
	}
	web := webOf(w)
	o := outputsOf(w)
	l := newLockstep(w, o)
	fields := fieldsOf(w, o, web)
	chooser := &chooser{w: w, o: o, l: l, f: fields, cqes: cqeReadsOf(w, fields, l)}
	steps, undone := web.deliveries()
	if undone {
		f.gap("the count of completions also falls, in the function at %#x", address)
	}
	if err := f.calls(w, o, web, depth); err != nil {
		return err
	}
	for _, at := range web.strange {
		f.gap("what is added to the count of completions at %#x is not understood", at)
	}
	f.events(chooser, web, steps)
	f.ones(chooser, web)
	return nil
}

// events places a site at every delivery.
func (f *pollFinder) events(c *chooser, web *web, steps []quantity) {
	seen := map[int]bool{}
	for _, step := range steps {
		if c.w.q.info[step].part >= partChoice {
			f.gap("completions are counted without a branch at %#x", c.w.q.info[step].at)
			continue
		}
		commitment := web.commitment(step)
		passed := commitment.passed()
		blocks, ok := commitment.frontier()
		if !ok {
			f.gap("no instruction is certain to run only with a completion after %#x", c.w.q.info[step].at)
			continue
		}
		for _, b := range blocks {
			if seen[b] {
				f.gap("two completions are counted at once at %#x", c.w.g.blocks[b].steps[0].address)
				continue
			}
			seen[b] = true
			site, ok := c.choose(event{block: b, count: c.w.q.info[step].a, total: web.total(step), alone: !web.summed[step], passed: passed})
			if !ok {
				f.gap("the kernel refuses every instruction of the block at %#x", c.w.g.blocks[b].steps[0].address)
				continue
			}
			f.sites = append(f.sites, site)
		}
	}
}

// ones places a site at every edge over which the number 1 is added: that is
// how a function counts which learns of one completion at a time.
func (f *pollFinder) ones(c *chooser, web *web) {
	seen := map[int]bool{}
	for _, edge := range web.ones {
		from := edge[0]
		if from < 0 || len(c.w.g.blocks[from].after) != 1 {
			f.gap("no instruction is certain to run only when a completion is added at %#x", c.w.g.blocks[edge[1]].steps[0].address)
			continue
		}
		if seen[from] {
			continue
		}
		seen[from] = true
		site, ok := c.choose(event{block: from, passed: map[[2]int]bool{edge: true}})
		if !ok {
			f.gap("the kernel refuses every instruction of the block at %#x", c.w.g.blocks[from].steps[0].address)
			continue
		}
		f.sites = append(f.sites, site)
	}
}

// calls follows the calls whose results take part in the count. A function
// called at several places is examined once, with what is the same at all.
func (f *pollFinder) calls(w *walk, o *outputs, web *web, depth int) error {
	states := map[uint64]*machineState{}
	tables := map[uint64]*quantities{}
	var order []uint64
	for _, call := range web.calls {
		s := f.c.at(w.q.info[call].at)
		b, index, ok := w.position(w.q.info[call].at)
		if s == nil || !ok {
			continue
		}
		local, imported := f.c.callee(s)
		state := w.before(b, index)
		if imported != "" || !f.passes(o, state) {
			continue
		}
		if local == 0 {
			f.gap("what delivers completions at the call at %#x is unknown", s.address)
			continue
		}
		if states[local] == nil {
			tables[local] = newQuantities()
			states[local] = f.c.calledState(w, o, state, tables[local])
			order = append(order, local)
			continue
		}
		f.c.restrict(states[local], f.c.calledState(w, o, state, tables[local]), tables[local])
	}
	for _, local := range order {
		f.elsewhere(w, local)
		if depth == maxDepth {
			return fmt.Errorf("%w: completions are delivered more than %d calls deep", ErrUnresolved, maxDepth)
		}
		if err := f.function(local, states[local], tables[local], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere looks for other callers of a local function, for which its sites
// would count what this poll_cq does not deliver.
func (f *pollFinder) elsewhere(w *walk, local uint64) {
	f.c.a.references(map[uint64]bool{local: true}, func(at uint64) {
		for back := uint64(0); back < 3; back++ {
			s := f.c.at(at - back)
			if s == nil || !s.direct || s.target != local {
				continue
			}
			if _, _, own := w.position(s.address); !own {
				f.shared = fmt.Sprintf("the function at %#x is also called from %#x", local, s.address)
			}
		}
	})
}

// passes reports whether a pointer into the array is among the arguments.
func (f *pollFinder) passes(o *outputs, state *machineState) bool {
	for _, r := range f.c.a.cpu.passed {
		if o.contains(state.register(r).of) {
			return true
		}
	}
	return false
}

// restrict keeps what two calls of a function have in common.
func (c *codeMap) restrict(state, other *machineState, q *quantities) {
	for r := range state.registers {
		if state.registers[r] != other.registers[r] {
			state.registers[r] = word{q.get(quantityKey{kind: kindResult, part: r}, word{}, word{}, 0), 0}
		}
	}
	for at, v := range state.slots {
		if other.slots[at] != v {
			delete(state.slots, at)
		}
	}
}

// calledState is the state at the entry of a local function: the arguments of
// the outer function as far as they are passed or still in the caller's frame.
func (c *codeMap) calledState(w *walk, o *outputs, state *machineState, q *quantities) *machineState {
	cpu := c.a.cpu
	s := entryState(cpu, q)
	push := cpu.pushed
	carry := func(have word, fresh word) word {
		switch {
		case have.of == quantityQueue, have.of == quantityConstant:
			return have
		case o.contains(have.of):
			return word{quantityOutput, 0}
		default:
			return fresh
		}
	}
	for r := register(0); r < 32; r++ {
		if r == cpu.stack {
			continue
		}
		fresh := word{q.get(quantityKey{kind: kindResult, part: int(r)}, word{}, word{}, 0), 0}
		s.registers[r] = fresh
		if slices.Contains(cpu.passed, r) || !cpu.scratchAtCall.has(r) {
			s.registers[r] = carry(state.registers[r], fresh)
		}
	}
	// Of pointers into the array only one can be the argument.
	first := false
	for _, r := range cpu.passed {
		if s.registers[r] == (word{quantityOutput, 0}) {
			if first {
				s.registers[r] = word{q.get(quantityKey{kind: kindResult, part: int(r)}, word{}, word{}, 0), 0}
			}
			first = true
		}
	}
	for r := register(0); r < 32; r++ {
		if s.registers[r] == (word{quantityOutput, 0}) && !slices.Contains(cpu.passed, r) {
			s.registers[r] = word{q.get(quantityKey{kind: kindResult, part: int(r)}, word{}, word{}, 0), 0}
		}
	}
	base := state.register(cpu.stack)
	for at, v := range state.slots {
		if at.stack == base.of && v.word.of == quantityQueue && v.size == 8 {
			s.slots[cell{stack: quantityStack, offset: at.offset - base.add + push}] = v
		}
	}
	return s
}

// result sums up.
func (f *pollFinder) result() SiteSet {
	byOffset := map[uint64]Site{}
	for _, s := range f.sites {
		if have, twice := byOffset[s.Offset]; twice && (have.WC != s.WC || have.CQ != s.CQ || have.CQE != s.CQE) {
			s.WC, s.CQ, s.CQE, s.Complete = Location{}, Location{}, Location{}, false
		}
		byOffset[s.Offset] = s
	}
	if len(byOffset) == 0 {
		if len(f.gaps) > 0 {
			return none("%s", f.gaps[0])
		}
		return none("nothing counts completions in what the function returns")
	}
	set := SiteSet{Kind: SitesFull, Shared: f.shared}
	if len(f.gaps) > 0 {
		set.Kind = SitesPartial
	}
	for _, s := range byOffset {
		set.Sites = append(set.Sites, s)
	}
	slices.SortFunc(set.Sites, func(a, b Site) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, s := range set.Sites {
		switch {
		case !s.WC.Known():
			f.gap("where the completion is at %#x is unknown", s.Offset)
		case !s.Complete:
			f.gap("the completion is not complete at %#x", s.Offset)
		case !s.CQ.Known():
			f.gap("where the CQ is at %#x is unknown", s.Offset)
		}
	}
	if len(f.gaps) > 0 {
		set.Kind, set.Reason = min(set.Kind, SitesCounting), f.gaps[0]
		if len(f.gaps) > 1 {
			set.Reason = fmt.Sprintf("%s, and %d more", f.gaps[0], len(f.gaps)-1)
		}
	}
	return set
}
