package provider

// changedBy returns the registers that a call of a local function may change.
// Compilers keep values in registers across calls of functions that they know
// to leave them alone, whatever the calling convention says (-fipa-ra).
func (c *codeMap) changedBy(address uint64, depth int) registers {
	if known, ok := c.changed[address]; ok {
		return known
	}
	all := c.a.cpu.scratchAtCall
	// A recursive function is taken to change everything that it may.
	c.changed[address] = all
	f := c.function(address)
	if f == nil || f.bounds.start != address || depth == 0 {
		return all
	}
	var changed registers
	for i := range f.instructions {
		in := &f.instructions[i]
		if !c.spend(1) {
			return all
		}
		switch {
		case i > 0 && throughTable(&f.instructions[i-1], in):
		case in.flow == flowCall, in.flow == flowJump && !(in.direct && f.bounds.contains(in.target)):
			if !in.direct || c.a.stub(in.target) != "" {
				return all
			}
			changed |= c.changedBy(in.target, depth-1)
		case in.flow == flowBranch && !f.bounds.contains(in.target):
			changed |= c.changedBy(in.target, depth-1)
		default:
			changed |= in.clobbers
			for _, a := range in.sets[:in.numSets] {
				changed = changed.with(a.to)
			}
		}
	}
	c.changed[address] = changed & all
	return changed & all
}

// throughTable recognises a jump to an address that was just computed, which
// stays in the function, unlike one to an address from memory.
func throughTable(previous, in *instruction) bool {
	return in.flow == flowJump && !in.direct && in.indirect.kind == sourceSum && previous.clobbers.has(in.indirect.base) && previous.flow == flowNext
}
