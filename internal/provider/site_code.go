package provider

import (
	"fmt"
	"slices"
)

// Bounds on the code examined for the sites of one function.
const (
	maxSiteSteps  = 1 << 14
	maxSiteBlocks = 1 << 11
)

// codeMap gives instructions by address: only such as a straight sweep over
// their function, whose bounds the unwind tables tell, begins at.
type codeMap struct {
	a *analysis
	// driver is the name of the library's driver.
	driver    string
	functions map[span]*function
	steps     map[uint64]*step
	// returning remembers whether local functions ever return.
	returning map[uint64]bool
	// changed remembers what registers local functions may change.
	changed map[uint64]registers
	budget  int
}

func newCodeMap(a *analysis) *codeMap {
	return &codeMap{a: a, functions: map[span]*function{}, steps: map[uint64]*step{}, returning: map[uint64]bool{}, changed: map[uint64]registers{}, budget: maxSiteEffort}
}

// maxSiteEffort bounds the work on the sites of one file, in instructions
// examined and executed. The largest provider of rdma-core 65 takes a fifth.
const maxSiteEffort = 8_000_000

func (c *codeMap) spend(n int) bool {
	c.budget -= n
	return c.budget >= 0
}

// function returns the swept function around an address, nil if there is none
// or it cannot be decoded.
func (c *codeMap) function(address uint64) *function {
	bounds, ok := c.a.frames.function(address)
	if !ok || !c.a.img.executable(bounds.start) {
		return nil
	}
	f, known := c.functions[bounds]
	if !known {
		if !c.spend(int(bounds.end - bounds.start)) {
			return nil
		}
		f, _ = c.a.decodeFunction(bounds)
		c.functions[bounds] = f
	}
	return f
}

// at returns the instruction at an address, nil if none begins there.
func (c *codeMap) at(address uint64) *step {
	if s, known := c.steps[address]; known {
		return s
	}
	var s *step
	if f := c.function(address); f != nil {
		if i, ok := f.index[address]; ok {
			lowered := c.a.cpu.lower(c.a.img.bytes(address, c.a.cpu.maxSize), f.instructions[i])
			s = &lowered
			if s.flow == flowCall && s.direct && c.a.stub(s.target) == "" {
				s.lost &^= c.a.cpu.scratchAtCall &^ c.changedBy(s.target, maxDepth)
			}
		}
	}
	c.steps[address] = s
	return s
}

// callee says what a call or jump leads to: an import by its name, or a local
// function.
func (c *codeMap) callee(s *step) (local uint64, imported string) {
	if s.direct {
		if name := c.a.stub(s.target); name != "" {
			return 0, name
		}
		return s.target, ""
	}
	if s.indirect.kind == sourceLoad && s.indirect.base == noRegister {
		return 0, c.a.relocations[uint64(s.indirect.offset)].imported
	}
	return 0, ""
}

// leaves reports whether a call never returns.
func (c *codeMap) leaves(s *step) bool {
	local, imported := c.callee(s)
	switch imported {
	case "":
	case "abort", "exit", "_exit", "__assert_fail", "__stack_chk_fail", "__chk_fail", "__fortify_fail", "__longjmp_chk", "longjmp":
		return true
	default:
		return false
	}
	return local != 0 && !c.returns(local)
}

// returns reports whether the local function may return. One that has neither
// a return nor a jump out of itself does not.
func (c *codeMap) returns(address uint64) bool {
	if known, ok := c.returning[address]; ok {
		return known
	}
	// A recursive function is taken to return.
	c.returning[address] = true
	f := c.function(address)
	if f == nil || f.bounds.start != address {
		return true
	}
	found := false
	dead := false
	for i := range f.instructions {
		s := c.at(f.instructions[i].address)
		if s == nil || !c.spend(1) {
			return true
		}
		out := (s.flow == flowJump || s.flow == flowBranch) && (!s.direct || !f.bounds.contains(s.target))
		found = found || s.returns || out
		if s.flow == flowCall && !found {
			dead = c.leaves(s) || dead
		}
	}
	c.returning[address] = found || !dead
	return c.returning[address]
}

// block is a straight piece of code that is entered only at its start.
type block struct {
	steps         []*step
	before, after []int
	// returns and exits mark the ways out of the function: a return, or a jump
	// to code that is not followed.
	returns, exits bool
}

func (b *block) last() *step { return b.steps[len(b.steps)-1] }

// graph is the control flow of a function and of what it jumps to, the parts
// that the compiler split off and functions called last.
type graph struct {
	blocks []block
	// at finds blocks by address. Block 0 is the entry.
	at map[uint64]int
	// order is the reverse post-order, rank its inverse.
	order, rank []int
	// unresolved are the indirect jumps that may be jump tables.
	unresolved []*step
}

// explorer follows the control flow and remembers what it reached.
type explorer struct {
	c       *codeMap
	steps   map[uint64]*step
	leaders map[uint64]bool
	known   *knownFlow
	queue   []uint64
}

// knownFlow is what executing a function has shown of its control flow.
type knownFlow struct {
	// tables are the targets of jumps through tables.
	tables map[uint64][]uint64
	// always and never are branches that are taken always, or never.
	always, never map[uint64]bool
}

// explore follows the control flow from an entry.
func (c *codeMap) explore(entry uint64, known *knownFlow) (*graph, error) {
	e := &explorer{c: c, steps: map[uint64]*step{}, leaders: map[uint64]bool{entry: true}, known: known, queue: []uint64{entry}}
	for len(e.queue) > 0 {
		at := e.queue[len(e.queue)-1]
		e.queue = e.queue[:len(e.queue)-1]
		if err := e.run(at); err != nil {
			return nil, err
		}
	}
	return e.graph(entry)
}

// run follows one straight line.
func (e *explorer) run(at uint64) error {
	for e.steps[at] == nil {
		s := e.c.at(at)
		if s == nil {
			return fmt.Errorf("%w: control flow reaches %#x, where no instruction begins", ErrUnresolved, at)
		}
		if len(e.steps) >= maxSiteSteps || !e.c.spend(1) {
			return fmt.Errorf("%w: more than %d instructions", ErrTooLarge, maxSiteSteps)
		}
		e.steps[at] = s
		next, targets := e.successors(s)
		for _, t := range targets {
			if !e.leaders[t] {
				e.leaders[t] = true
				e.queue = append(e.queue, t)
			}
		}
		if !next {
			return nil
		}
		if s.flow == flowBranch {
			e.leaders[s.end()] = true
		}
		at = s.end()
	}
	return nil
}

// successors says whether the next instruction follows, and what else may.
func (e *explorer) successors(s *step) (next bool, targets []uint64) {
	inside := e.c.function(s.address).bounds.contains(s.end())
	switch s.flow {
	case flowNext:
		return inside, nil
	case flowBranch:
		if s.direct && !e.known.never[s.address] {
			targets = []uint64{s.target}
		}
		return inside && !e.known.always[s.address], targets
	case flowCall:
		return inside && !e.c.leaves(s), nil
	case flowJump:
		if s.direct && e.c.a.stub(s.target) == "" {
			return false, []uint64{s.target}
		}
		return false, e.known.tables[s.address]
	default:
		return false, nil
	}
}

// graph cuts what was reached into blocks.
func (e *explorer) graph(entry uint64) (*graph, error) {
	g := &graph{at: map[uint64]int{}}
	starts := make([]uint64, 0, len(e.leaders))
	for at := range e.leaders {
		if e.steps[at] != nil {
			starts = append(starts, at)
		}
	}
	if len(starts) > maxSiteBlocks {
		return nil, fmt.Errorf("%w: more than %d blocks", ErrTooLarge, maxSiteBlocks)
	}
	slices.Sort(starts)
	i := slices.Index(starts, entry)
	starts[0], starts[i] = starts[i], starts[0]
	if i > 0 {
		slices.Sort(starts[1:])
	}
	for n, at := range starts {
		g.at[at] = n
	}
	for _, at := range starts {
		g.blocks = append(g.blocks, block{})
		b := &g.blocks[len(g.blocks)-1]
		for s := e.steps[at]; ; {
			b.steps = append(b.steps, s)
			next, targets := e.successors(s)
			for _, t := range targets {
				b.after = append(b.after, g.at[t])
			}
			b.returns = s.returns
			b.exits = s.flow == flowJump && len(targets) == 0
			if !next {
				break
			}
			if e.leaders[s.end()] {
				b.after = append(b.after, g.at[s.end()])
				break
			}
			s = e.steps[s.end()]
		}
		if last := b.last(); b.exits && !last.direct && last.indirect.kind == sourceSum {
			g.unresolved = append(g.unresolved, last)
		}
	}
	g.connect()
	return g, nil
}

// connect fills in before and the order.
func (g *graph) connect() {
	for i := range g.blocks {
		slices.Sort(g.blocks[i].after)
		g.blocks[i].after = slices.Compact(g.blocks[i].after)
		for _, j := range g.blocks[i].after {
			g.blocks[j].before = append(g.blocks[j].before, i)
		}
	}
	g.rank = make([]int, len(g.blocks))
	seen := make([]bool, len(g.blocks))
	type visit struct{ block, next int }
	stack := []visit{{0, 0}}
	seen[0] = true
	for len(stack) > 0 {
		v := &stack[len(stack)-1]
		if v.next < len(g.blocks[v.block].after) {
			to := g.blocks[v.block].after[v.next]
			v.next++
			if !seen[to] {
				seen[to] = true
				stack = append(stack, visit{to, 0})
			}
			continue
		}
		g.order = append(g.order, v.block)
		stack = stack[:len(stack)-1]
	}
	slices.Reverse(g.order)
	for r, b := range g.order {
		g.rank[b] = r
	}
}
