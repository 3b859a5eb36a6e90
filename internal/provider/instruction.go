package provider

import (
	"debug/elf"
	"fmt"
)

// register is a general-purpose register: 0..15 are rax, rcx, rdx, rbx, rsp,
// rbp, rsi, rdi, r8..r15 on x86-64 (the order of their encoding), 0..30 are
// x0..x30 and 31 the stack pointer on arm64.
type register uint8

// noRegister is none, or one whose content is of no interest.
const noRegister register = 0xff

// registers is a set.
type registers uint64

func setOf(rs ...register) registers {
	var s registers
	for _, r := range rs {
		s = s.with(r)
	}
	return s
}

func (s registers) with(r register) registers {
	if r >= 64 {
		return s
	}
	return s | 1<<r
}

func (s registers) has(r register) bool { return r < 64 && s&(1<<r) != 0 }

// flow says where execution goes after an instruction.
type flow uint8

const (
	flowNext   flow = iota
	flowJump        // to the target only
	flowBranch      // to the target or the next instruction
	flowCall        // to the target and, by its return, the next instruction
	flowStop        // return, trap
)

// source is where the new content of a register comes from.
type source struct {
	kind sourceKind
	// base is the register read, other the second one of a choice.
	base, other register
	// offset is the constant, what is added to base, or the displacement of a
	// load from base; for a load without base, the address.
	offset int64
}

type sourceKind uint8

const (
	sourceUnknown  sourceKind = iota
	sourceConstant            // offset
	sourceSum                 // base + offset
	sourceLoad                // 8 bytes at base + offset
	sourceChoice              // base or other
)

// assignment is a write to a whole register whose source is understood.
type assignment struct {
	to   register
	from source
}

// store is a write of 8 bytes from a register.
type store struct {
	base   register
	offset int64
	value  register
}

// instruction is a machine instruction reduced to what the analyses here ask:
// where execution goes and what registers hold afterwards.
type instruction struct {
	address uint64
	size    int
	flow    flow
	// target is the destination of a jump, branch or call that is direct;
	// otherwise indirect says what is jumped to.
	target   uint64
	direct   bool
	indirect source
	// sets are the registers that get a known content, clobbers those that get
	// an unknown one.
	sets     [2]assignment
	numSets  int
	clobbers registers
	stores   [2]store
	// numStores counts stores, writesMemory also those that are not listed.
	numStores    int
	writesMemory bool
}

func (i *instruction) end() uint64 { return i.address + uint64(i.size) }

func (i *instruction) set(to register, from source) {
	if to == noRegister {
		return
	}
	if from.kind == sourceUnknown || i.numSets == len(i.sets) {
		i.clobbers = i.clobbers.with(to)
		return
	}
	i.sets[i.numSets] = assignment{to, from}
	i.numSets++
}

func (i *instruction) store(s store) {
	i.writesMemory = true
	if i.numStores < len(i.stores) {
		i.stores[i.numStores] = s
		i.numStores++
	}
}

// writes reports whether the instruction changes the register.
func (i *instruction) writes(r register) bool {
	if i.clobbers.has(r) {
		return true
	}
	for _, a := range i.sets[:i.numSets] {
		if a.to == r {
			return true
		}
	}
	return false
}

// changesOnly reports whether the instruction leaves everything as it is but
// for registers of the set.
func (i *instruction) changesOnly(allowed registers) bool {
	written := i.clobbers
	for _, a := range i.sets[:i.numSets] {
		written = written.with(a.to)
	}
	return written&^allowed == 0 && !i.writesMemory
}

// processor is what differs between the two instruction sets.
type processor struct {
	// decode reads the instruction at the start of the bytes.
	decode func(code []byte, address uint64) (instruction, error)
	// arguments are the registers of the first three arguments.
	arguments [3]register
	stack     register
	// scratch are the registers that a stub of the procedure linkage table
	// may change.
	scratch registers
	// maxSize is the length of the longest instruction.
	maxSize int
	// landing reports whether the bytes begin with the marker of a valid
	// target of indirect calls (endbr64, bti), and its length.
	landing func(code []byte) (int, bool)
	// returnPastLanding says that a return probe may stand past the marker.
	returnPastLanding bool
	// cost says what the kernel does with a probe on the instruction.
	cost func(code []byte) probeCost
	// lower spells out the effects of a decoded instruction.
	lower func(code []byte, in instruction) step
	// passed are all registers for arguments, result is where the result is.
	passed []register
	result register
	// scratchAtCall may change in a call; pushed is how far the call itself
	// moves the stack pointer, in bytes.
	scratchAtCall registers
	pushed        int64
}

func processorOf(machine elf.Machine) (*processor, error) {
	switch machine {
	case elf.EM_X86_64:
		return processorX86(), nil
	case elf.EM_AARCH64:
		return processorA64(), nil
	default:
		return nil, fmt.Errorf("%w: %v", ErrMachine, machine)
	}
}
