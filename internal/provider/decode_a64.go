package provider

import (
	"encoding/binary"
	"fmt"
)

// stackA64 is how this package numbers sp; xzr is noRegister.
const stackA64 register = 31

// callerSavedA64 may change in a call (AAPCS64): x0..x18 and x30, the link.
const callerSavedA64 registers = 1<<19 - 1 | 1<<30

func processorA64() *processor {
	return &processor{
		decode:    decodeA64,
		arguments: [3]register{0, 1, 2},
		stack:     stackA64,
		scratch:   setOf(16, 17),
		maxSize:   4,
		landing:   landingA64,
		cost:      costA64,
		lower:     lowerA64,
		passed:    []register{0, 1, 2, 3, 4, 5, 6, 7},
		result:    0,

		scratchAtCall: callerSavedA64,
	}
}

// landingA64 recognises the bti instructions that accept a call.
func landingA64(code []byte) (int, bool) {
	if len(code) < 4 {
		return 0, false
	}
	w := binary.LittleEndian.Uint32(code)
	const btiC, btiJC = 0xd503245f, 0xd50324df
	return 4, w == btiC || w == btiJC
}

// decodeA64 reads one instruction of A64. The encodings are those of the Arm
// Architecture Reference Manual, chapter C4; the fields are read here because
// golang.org/x/arch does not export the displacements of memory operands.
func decodeA64(code []byte, address uint64) (instruction, error) {
	if len(code) < 4 {
		return instruction{}, fmt.Errorf("%w: cannot decode the instruction at %#x: code ends", ErrUnresolved, address)
	}
	w := binary.LittleEndian.Uint32(code)
	out := instruction{address: address, size: 4}
	switch op0 := w >> 25 & 0xf; {
	case op0&0b1110 == 0b1000:
		immediateA64(w, &out)
	case op0&0b1110 == 0b1010:
		branchA64(w, &out)
	case op0&0b0101 == 0b0100:
		memoryA64(w, &out)
	case op0&0b0111 == 0b0101:
		arithmeticA64(w, &out)
	case op0&0b0111 == 0b0111:
		vectorA64(w, &out)
	default:
		// Reserved encodings (udf) and SVE, which may write a register.
		if w>>16 == 0 {
			out.flow = flowStop
			break
		}
		out.clobbers = registers(0).with(zeroA64(w & 31))
	}
	return out, nil
}

// zeroA64 is a register field in which 31 means xzr.
func zeroA64(field uint32) register {
	if field &= 31; field == 31 {
		return noRegister
	}
	return register(field & 31)
}

// stackOrA64 is a register field in which 31 means sp.
func stackOrA64(field uint32) register { return register(field & 31) }

// signed extends the low bits of v.
func signed(v uint32, bits int) int64 { return int64(int32(v<<(32-bits)) >> (32 - bits)) }

// immediateA64 handles data processing with an immediate.
func immediateA64(w uint32, out *instruction) {
	switch {
	case w&0x9f000000 == 0x90000000: // adrp
		pages := signed(w>>5&0x7ffff<<2|w>>29&3, 21)
		base := int64(out.address &^ 0xfff)
		out.set(zeroA64(w), source{kind: sourceConstant, offset: base + pages<<12})
	case w&0x9f000000 == 0x10000000: // adr
		offset := signed(w>>5&0x7ffff<<2|w>>29&3, 21)
		out.set(zeroA64(w), source{kind: sourceConstant, offset: int64(out.address) + offset})
	case w&0xff800000 == 0x91000000: // add x, x, #imm
		out.set(stackOrA64(w), sumA64(w, 1))
	case w&0xff800000 == 0xd1000000: // sub x, x, #imm
		out.set(stackOrA64(w), sumA64(w, -1))
	case w&0xff800000 == 0xd2800000: // movz x
		shift := w >> 21 & 3 * 16
		out.set(zeroA64(w), source{kind: sourceConstant, offset: int64(uint64(w>>5&0xffff) << shift)})
	default:
		out.clobbers = out.clobbers.with(zeroA64(w))
	}
}

func sumA64(w uint32, sign int64) source {
	imm := int64(w >> 10 & 0xfff)
	if w>>22&1 != 0 {
		imm <<= 12
	}
	return source{kind: sourceSum, base: stackOrA64(w >> 5), offset: sign * imm}
}

// branchA64 handles branches, exceptions and system instructions.
func branchA64(w uint32, out *instruction) {
	to := func(offset int64) {
		out.target, out.direct = out.address+uint64(offset*4), true
	}
	switch {
	case w&0xfc000000 == 0x14000000: // b
		out.flow = flowJump
		to(signed(w, 26))
	case w&0xfc000000 == 0x94000000: // bl
		out.flow, out.clobbers = flowCall, callerSavedA64
		to(signed(w, 26))
	case w&0xfe000000 == 0x54000000: // b.cond, bc.cond
		out.flow = flowBranch
		to(signed(w>>5, 19))
	case w&0x7e000000 == 0x34000000: // cbz, cbnz
		out.flow = flowBranch
		to(signed(w>>5, 19))
	case w&0x7e000000 == 0x36000000: // tbz, tbnz
		out.flow = flowBranch
		to(signed(w>>5, 14))
	case w&0xfffffc1f == 0xd61f0000 || w&0xfffff800 == 0xd71f0800 || w&0xfffff81f == 0xd61f081f: // br, braa, braaz
		out.flow, out.indirect = flowJump, source{kind: sourceSum, base: zeroA64(w >> 5)}
	case w&0xfffffc1f == 0xd63f0000 || w&0xfffff800 == 0xd73f0800 || w&0xfffff81f == 0xd63f081f: // blr, blraa, blraaz
		out.flow, out.clobbers = flowCall, callerSavedA64
		out.indirect = source{kind: sourceSum, base: zeroA64(w >> 5)}
	case w&0xfe000000 == 0xd6000000: // ret, eret and their authenticated forms
		out.flow = flowStop
	case w&0xff000000 == 0xd4000000: // exceptions: svc returns, brk and hlt do not
		if w&0xffe0001f != 0xd4000001 {
			out.flow = flowStop
		}
		out.clobbers = registers(0).with(0)
	case w&0xfff00000 == 0xd5300000 || w&0xfff80000 == 0xd5280000: // mrs, sysl
		out.clobbers = registers(0).with(zeroA64(w))
	case w&0xfffff01f == 0xd503201f: // hints; some authenticate the pointers in x17 and x30
		if hint := w >> 5 & 0x7f; hint >= 7 && hint < 32 {
			out.clobbers = setOf(17, 30)
		}
	}
}

// memoryA64 handles loads and stores.
func memoryA64(w uint32, out *instruction) {
	rt, rt2, rn := zeroA64(w), zeroA64(w>>10), stackOrA64(w>>5)
	vector := w>>26&1 != 0
	switch {
	case w&0xffc00000 == 0xf9400000: // ldr x, [x, #imm]
		out.set(rt, source{kind: sourceLoad, base: rn, offset: int64(w>>10&0xfff) * 8})
	case w&0xffc00000 == 0xf9000000: // str x, [x, #imm]
		out.store(store{base: rn, offset: int64(w>>10&0xfff) * 8, value: rt})
	case w&0xffe00c00 == 0xf8400000: // ldur x
		out.set(rt, source{kind: sourceLoad, base: rn, offset: signed(w>>12, 9)})
	case w&0xffe00c00 == 0xf8000000: // stur x
		out.store(store{base: rn, offset: signed(w>>12, 9), value: rt})
	case w&0xffc00000 == 0xa9400000: // ldp x, x
		offset := signed(w>>15, 7) * 8
		if rt == rn {
			// The second load uses the base as it was before the first.
			out.clobbers = setOf(rt, rt2)
			return
		}
		out.set(rt, source{kind: sourceLoad, base: rn, offset: offset})
		out.set(rt2, source{kind: sourceLoad, base: rn, offset: offset + 8})
	case w&0xffc00000 == 0xa9000000: // stp x, x
		offset := signed(w>>15, 7) * 8
		out.store(store{base: rn, offset: offset, value: rt})
		out.store(store{base: rn, offset: offset + 8, value: rt2})
	case w&0x3b000000 == 0x18000000: // ldr literal
		if w>>24 == 0x58 {
			out.set(rt, source{kind: sourceLoad, base: noRegister, offset: int64(out.address) + signed(w>>5, 19)*4})
		} else if !vector && w>>30 != 3 {
			out.clobbers = out.clobbers.with(rt)
		}
	default:
		otherMemoryA64(w, out, vector)
	}
}

// otherMemoryA64 is careful with what it does not know: every register an
// encoding may write counts as written.
func otherMemoryA64(w uint32, out *instruction, vector bool) {
	rt, rt2, rn := zeroA64(w), zeroA64(w>>10), stackOrA64(w>>5)
	pair := w&0x3a000000 == 0x28000000
	single := w&0x3a000000 == 0x38000000
	switch {
	case pair:
		load := w>>22&1 != 0
		out.writesMemory = !load
		if load && !vector {
			out.clobbers = out.clobbers.with(rt).with(rt2)
		}
		if w>>23&1 != 0 { // pre- and post-index
			out.clobbers = out.clobbers.with(rn)
		}
	case single:
		atomic := w>>24&1 == 0 && w>>21&1 != 0 && w>>10&3 == 0
		load := w>>22&3 != 0
		prefetch := !vector && w>>30 == 3 && w>>22&3 == 2
		out.writesMemory = !load || atomic
		if (load || atomic) && !vector && !prefetch {
			out.clobbers = out.clobbers.with(rt)
		}
		if w>>24&1 == 0 && w>>21&1 == 0 && w>>10&1 != 0 { // pre- and post-index
			out.clobbers = out.clobbers.with(rn)
		}
	default:
		out.writesMemory = true
		out.clobbers = out.clobbers.with(rt).with(rt2).with(rn).with(zeroA64(w >> 16))
	}
}

// arithmeticA64 handles data processing of registers.
func arithmeticA64(w uint32, out *instruction) {
	to := zeroA64(w)
	switch {
	case w&0xffe0ffe0 == 0xaa0003e0: // mov x, x
		if from := zeroA64(w >> 16); from != noRegister {
			out.set(to, source{kind: sourceSum, base: from})
			return
		}
		out.set(to, source{kind: sourceConstant})
	case w&0xffe00c00 == 0x9a800000: // csel x
		first, second := zeroA64(w>>5), zeroA64(w>>16)
		if first == noRegister || second == noRegister {
			out.clobbers = out.clobbers.with(to)
			return
		}
		out.set(to, source{kind: sourceChoice, base: first, other: second})
	case w&0x3fe00010 == 0x3a400000:
		// ccmn, ccmp: where others have the destination they have flags.
	default:
		out.clobbers = out.clobbers.with(to)
	}
}

// vectorA64 handles floating point and vectors; only moves and conversions to
// general registers matter.
func vectorA64(w uint32, out *instruction) {
	convert := w&0x5f20fc00 == 0x1e200000
	fixedPoint := w&0x5f200000 == 0x1e000000
	element := w&0xbfe08400 == 0x0e000400
	if convert || fixedPoint || element {
		out.clobbers = out.clobbers.with(zeroA64(w))
	}
}
