package provider

import "fmt"

// function is the code between two bounds, decoded in a straight line, with
// the ways execution reaches each instruction.
type function struct {
	bounds       span
	instructions []instruction
	index        map[uint64]int
	// before lists for each instruction those that may run directly before.
	before [][]int32
}

// decodeFunction decodes everything within the bounds. Compilers put data
// between functions, not into them, so what cannot be decoded is an error.
func (a *analysis) decodeFunction(bounds span) (*function, error) {
	code := a.img.bytes(bounds.start, int(min(bounds.end-bounds.start, maxFunctionSize)))
	if uint64(len(code)) != bounds.end-bounds.start {
		return nil, fmt.Errorf("%w: function at %#x is outside the file", ErrMalformed, bounds.start)
	}
	f := &function{bounds: bounds, index: map[uint64]int{}}
	for at := bounds.start; at < bounds.end; {
		if !a.spend(1) {
			return nil, errEffort
		}
		in, err := a.cpu.decode(code[at-bounds.start:], at)
		if err != nil {
			return nil, err
		}
		f.index[at] = len(f.instructions)
		f.instructions = append(f.instructions, in)
		at += uint64(in.size)
	}
	return f, nil
}

// connect fills in before. A call does not return where leaves says so.
func (f *function) connect(leaves func(*instruction) bool) {
	f.before = make([][]int32, len(f.instructions))
	for i := range f.instructions {
		in := &f.instructions[i]
		next := in.flow == flowNext || in.flow == flowBranch || in.flow == flowCall && !leaves(in)
		if next && i+1 < len(f.instructions) {
			f.before[i+1] = append(f.before[i+1], int32(i))
		}
		if !in.direct || in.flow == flowCall {
			continue
		}
		if to, ok := f.index[in.target]; ok {
			f.before[to] = append(f.before[to], int32(i))
		}
	}
}
