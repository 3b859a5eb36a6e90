package provider

import "fmt"

// maxPrologue bounds, in instructions, how far into a function an entry probe
// may stand.
const maxPrologue = 16

// locate decides where probes on the function at the address may stand.
func (a *analysis) locate(address uint64) (Target, error) {
	code := a.img.bytes(address, 64)
	offset, ok := a.img.fileOffset(address)
	if !ok || len(code) == 0 || !a.img.executable(address) {
		return Target{}, fmt.Errorf("%w: function at %#x is not code of this file", ErrMalformed, address)
	}
	// What the unwind tables do not know may be the middle of an instruction.
	bounds, ok := a.frames.function(address)
	if !ok || bounds.start != address {
		return Target{}, fmt.Errorf("%w: no bounds of the function at %#x", ErrUnresolved, address)
	}
	t := Target{Offset: offset, ReturnOffset: offset}
	landing, ok := a.cpu.landing(code)
	if !ok {
		landing = 0
	}
	if a.cpu.returnPastLanding {
		t.ReturnOffset += uint64(landing)
	}
	t.EntryOffset = offset + (a.entry(bounds, landing) - address)
	for _, at := range []uint64{t.Offset, t.ReturnOffset, t.EntryOffset} {
		here := a.img.bytes(address+(at-offset), a.cpu.maxSize)
		if a.cpu.cost(here) == costRefused {
			return Target{}, fmt.Errorf("%w: % x at file offset %#x", ErrRefusedInstruction, here[:min(len(here), 8)], at)
		}
		// Where user shadow stacks are on, some kernels emulate a call wrongly
		// and the program dies.
		if in, err := a.cpu.decode(here, address+(at-offset)); err == nil && in.flow == flowCall {
			return Target{}, fmt.Errorf("%w: a call at file offset %#x, which is not safe with user shadow stacks", ErrRefusedInstruction, at)
		}
	}
	return t, nil
}

// entry returns the address of the cheapest instruction for a probe on entry.
func (a *analysis) entry(bounds span, landing int) uint64 {
	address := bounds.start
	standard := address
	if a.cpu.returnPastLanding {
		standard += uint64(landing)
	}
	best := a.straightLine(address+uint64(landing), bounds)
	if best == 0 {
		return standard
	}
	// A jump back into the prologue would make the probe fire more than once.
	f, err := a.decodeFunction(bounds)
	if err != nil {
		return standard
	}
	for i := range f.instructions {
		in := &f.instructions[i]
		if in.direct && in.flow != flowCall && in.target > address && in.target <= best {
			return standard
		}
	}
	return best
}

// straightLine looks for an emulated instruction that is reached with the
// arguments in place and memory untouched but for the stack, 0 if there is none.
func (a *analysis) straightLine(at uint64, bounds span) uint64 {
	var fallBack uint64
	for range maxPrologue {
		code := a.img.bytes(at, a.cpu.maxSize)
		in, err := a.cpu.decode(code, at)
		if err != nil || !bounds.contains(at) {
			return fallBack
		}
		cost := a.cpu.cost(code)
		if cost == costEmulated && in.flow != flowCall && in.flow != flowStop {
			return at
		}
		if cost == costLongNop && fallBack == 0 {
			fallBack = at
		}
		if in.flow != flowNext || a.disturbs(&in) {
			return fallBack
		}
		at = in.end()
	}
	return fallBack
}

// disturbs reports whether a probe after the instruction would see something
// else than the caller passed.
func (a *analysis) disturbs(in *instruction) bool {
	for _, r := range a.cpu.passed[:a.kept] {
		if in.writes(r) {
			return true
		}
	}
	if !in.writesMemory {
		return false
	}
	for _, s := range in.stores[:in.numStores] {
		if s.base != a.cpu.stack {
			return true
		}
	}
	return in.numStores == 0
}
