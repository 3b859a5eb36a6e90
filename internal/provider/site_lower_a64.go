package provider

import "encoding/binary"

// lowerA64 spells out the effects of an instruction of A64. The encodings are
// those of the Arm Architecture Reference Manual, chapter C4. What it does not
// explain counts as unknown: decodeA64 says what is written.
func lowerA64(code []byte, in instruction) step {
	s := step{instruction: in, cost: costA64(code), remade: remade{to: noRegister}}
	if len(code) < 4 {
		s.finish()
		return s
	}
	w := binary.LittleEndian.Uint32(code)
	s.returns = w&0xfffffc1f == 0xd65f0000 || w&0xfffffbff == 0xd65f0bff
	switch {
	case w&0xff000000 == 0xb4000000: // cbz x
		s.tests, s.onZero = inRegister(zeroA64(w)), true
	case w&0xff000000 == 0xb5000000: // cbnz x
		s.tests, s.onNonzero = inRegister(zeroA64(w)), true
	case w&0xff00001f == 0x54000000: // b.eq
		s.onZero = true
	case w&0xff00001f == 0x54000001: // b.ne
		s.onNonzero = true
	case in.flow != flowNext:
	case w&0x7fe0fc1f == 0x6b00001f: // cmp
		s.compares = [2]operand{zeroOrRegister(w >> 5), zeroOrRegister(w >> 16)}
	case w&0xfffffc00 == 0x5ac00800: // rev w
		s.remade = remade{to: zeroA64(w), from: zeroA64(w >> 5), swaps: true}
	case w&0xfffffc00 == 0x12005c00, w&0xfffffc00 == 0x53005c00: // and #0xffffff, ubfx #0, #24
		s.remade = remade{to: zeroA64(w), from: zeroA64(w >> 5)}
	case w>>25&0b1110 == 0b1000:
		s.immediateA64(w)
	case w>>25&0b0101 == 0b0100:
		s.memoryA64(w)
	case w>>25&0b0111 == 0b0101:
		s.arithmeticA64(w)
	}
	if s.tests.register == noRegister {
		s.tests = operand{}
	}
	s.keepsFlags = in.flow == flowNext && w>>25&0b1110 == 0b1000 && w&0x1f800000 != 0x11000000 || w&0x7fe0ffe0 == 0x2a0003e0
	s.finish()
	if w&0xbe000000 == 0x0c000000 {
		// Structures of vectors write no general register but the base.
		s.lost = 0
		if w>>23&1 != 0 {
			s.lost = s.lost.with(stackOrA64(w >> 5))
		}
	}
	return s
}

// zeroOrRegister is an operand in which 31 means the number 0.
func zeroOrRegister(field uint32) operand {
	if r := zeroA64(field); r != noRegister {
		return inRegister(r)
	}
	return operand{}
}

// assign sets a register of which 31 means none.
func (s *step) assign(to register, from formula) {
	if to != noRegister && from.kind != formulaUnknown {
		s.set(to, from)
	}
}

// immediateA64 handles data processing with an immediate. 32-bit forms count
// like 64-bit ones: what is followed, counts and pointers, fits.
func (s *step) immediateA64(w uint32) {
	switch {
	case w&0x1f000000 == 0x10000000: // adr, adrp: decoded already
		if s.numSets == 1 {
			s.assign(s.sets[0].to, constant(s.sets[0].from.offset))
		}
	case w&0x1f800000 == 0x11000000: // add, adds, sub, subs
		imm := int64(w >> 10 & 0xfff)
		if w>>22&1 != 0 {
			imm <<= 12
		}
		if w>>30&1 != 0 {
			imm = -imm
		}
		to := stackOrA64(w)
		if w>>29&1 != 0 {
			to = zeroA64(w)
		}
		s.assign(to, copyOf(inRegister(stackOrA64(w>>5)), imm))
	case w&0x1f800000 == 0x12800000: // movn, movz, movk
		s.moveWide(w)
	case w&0x1f800000 == 0x12000000: // and sp, x, #imm
		if w>>29&3 == 0 && stackOrA64(w) == stackA64 {
			s.set(stackA64, formula{kind: formulaAlign, a: inRegister(stackOrA64(w >> 5))})
		}
		if w&0x7ffffc00 == 0x12003c00 || w&0xfffffc00 == 0x92403c00 || w&0xfffffc00 == 0x92407c00 {
			// and #0xffff, and #0xffffffff: a count kept in fewer bits.
			s.assign(stackOrA64(w), copyOf(inRegister(zeroA64(w>>5)), 0))
		}
	case w&0x1f800000 == 0x13000000:
		s.bitfield(w)
	}
}

func (s *step) moveWide(w uint32) {
	imm := uint64(w>>5&0xffff) << (w >> 21 & 3 * 16)
	switch w >> 29 & 3 {
	case 0:
		n := int64(^imm)
		if w>>31 == 0 {
			n = int64(int32(n))
		}
		s.assign(zeroA64(w), constant(n))
	case 2:
		n := int64(imm)
		if w>>31 == 0 {
			n = int64(int32(n))
		}
		s.assign(zeroA64(w), constant(n))
	}
}

// bitfield handles the aliases that matter of sbfm and ubfm: sign and zero
// extension of 16 and 32 bits, and shifts to the left.
func (s *step) bitfield(w uint32) {
	width := uint32(32)
	if w>>31 != 0 {
		width = 64
	}
	immr, imms := w>>16&0x3f, w>>10&0x3f
	from := inRegister(zeroA64(w >> 5))
	if from.register == noRegister || w>>29&3 == 1 {
		return
	}
	switch {
	case immr == 0 && (imms == 31 || imms == 15):
		s.assign(zeroA64(w), copyOf(from, 0))
	case immr != 0 && immr < width && imms < immr:
		// lsl, ubfiz and sbfiz of a count or index.
		if shift := width - immr; shift < 32 {
			s.assign(zeroA64(w), formula{kind: formulaSum, b: from, scale: 1 << shift})
		}
	}
}

// arithmeticA64 handles data processing of registers.
func (s *step) arithmeticA64(w uint32) {
	to, n, m := zeroA64(w), zeroOrRegister(w>>5), zeroOrRegister(w>>16)
	switch {
	case w&0x7fe0ffe0 == 0x2a0003e0: // mov
		s.assign(to, copyOf(m, 0))
	case w&0x1f200000 == 0x0b000000: // add, sub with a shifted register
		shift := w >> 10 & 0x3f
		if w>>22&3 != 0 || shift > 16 {
			return
		}
		s.assign(to, sumOrDifference(w, n, m, 1<<shift))
	case w&0x1f200000 == 0x0b200000: // add, sub with an extended register
		shift := w >> 10 & 7
		to, n = stackOrA64(w), inRegister(stackOrA64(w>>5))
		if w>>29&1 != 0 {
			to = zeroA64(w)
		}
		if shift > 4 {
			return
		}
		s.assign(to, sumOrDifference(w, n, m, 1<<shift))
	case w&0x7fe00c00 == 0x1a800000: // csel
		s.assign(to, formula{kind: formulaChoice, a: n, b: m})
	case w&0x7fe00c00 == 0x1a800400: // csinc
		s.assign(to, formula{kind: formulaChoice, a: n, b: m, add: 1})
	case w&0x7fe08000 == 0x1b000000, w&0xff608000 == 0x9b200000: // madd, smaddl, umaddl
		s.assign(to, formula{kind: formulaProduct, a: zeroOrRegister(w >> 10), b: n, c: m})
	}
}

func sumOrDifference(w uint32, n, m operand, scale int64) formula {
	if w>>30&1 == 0 {
		return formula{kind: formulaSum, a: n, b: m, scale: scale}
	}
	if scale != 1 {
		return formula{}
	}
	return formula{kind: formulaDifference, a: n, b: m}
}

// memoryA64 handles loads and stores.
func (s *step) memoryA64(w uint32) {
	switch {
	case w&0x3a000000 == 0x28000000:
		s.pairA64(w)
	case w&0x3b000000 == 0x39000000: // unsigned offset
		size, ok := sizeA64(w)
		if ok {
			s.transferA64(w, memoryOperand{base: stackOrA64(w >> 5), index: noRegister, disp: int64(w>>10&0xfff) * int64(size), known: true}, size)
		}
	case w&0x3b200000 == 0x38000000: // unscaled, pre- and post-index
		s.indexedA64(w)
	case w&0x3b200c00 == 0x38200800: // register offset
		size, ok := sizeA64(w)
		if !ok {
			return
		}
		scale := int64(1)
		if w>>12&1 != 0 {
			scale = int64(size)
		}
		at := memoryOperand{base: stackOrA64(w >> 5), index: zeroA64(w >> 16), scale: scale, known: true}
		s.transferA64(w, at, size)
	default:
		s.otherStoreA64(w)
	}
}

// sizeA64 is the size of a single transfer in bytes.
func sizeA64(w uint32) (int, bool) {
	vector, opc := w>>26&1 != 0, w>>22&3
	if vector && opc&2 != 0 {
		return 16, w>>30 == 0
	}
	return 1 << (w >> 30), vector || w>>30 != 3 || opc != 2
}

// loadsA64 reports whether a single transfer reads memory.
func loadsA64(w uint32) bool {
	if w>>26&1 != 0 {
		return w>>22&1 != 0
	}
	return w>>22&3 != 0
}

// transferA64 adds the effects of one load or store.
func (s *step) transferA64(w uint32, at memoryOperand, size int) {
	vector := w>>26&1 != 0
	rt := zeroA64(w)
	if loadsA64(w) {
		if vector || rt == noRegister {
			return
		}
		from := operand{kind: operandMemory, memory: at, size: size}
		if size < 8 && at.base != stackA64 {
			s.loads = append(s.loads, from)
		}
		if size >= 4 {
			s.assign(rt, copyOf(from, 0))
		}
		return
	}
	s.storeA64(at, size, rt, vector)
}

func (s *step) storeA64(at memoryOperand, size int, rt register, vector bool) {
	switch {
	case vector:
		s.put(at, size, formula{}, noRegister)
	case rt == noRegister:
		s.put(at, size, constant(0), noRegister)
	case size >= 4:
		s.put(at, size, copyOf(inRegister(rt), 0), rt)
	default:
		s.put(at, size, formula{}, rt)
	}
}

// indexedA64 handles unscaled offsets and those that change the base.
func (s *step) indexedA64(w uint32) {
	size, ok := sizeA64(w)
	if !ok {
		return
	}
	base, offset := stackOrA64(w>>5), signed(w>>12, 9)
	at := memoryOperand{base: base, index: noRegister, known: true}
	if mode := w >> 10 & 3; mode != 1 {
		at.disp = offset
	}
	s.transferA64(w, at, size)
	if w>>10&1 != 0 {
		s.assign(base, copyOf(inRegister(base), offset))
	}
}

// pairA64 handles loads and stores of two registers.
func (s *step) pairA64(w uint32) {
	vector := w>>26&1 != 0
	size := 4 << (w >> 31)
	if vector {
		size = 4 << (w >> 30)
	}
	if !vector && w>>30&1 != 0 && w>>22&1 != 0 || size > 16 { // ldpsw
		return
	}
	base, offset := stackOrA64(w>>5), signed(w>>15, 7)*int64(size)
	at := memoryOperand{base: base, index: noRegister, known: true}
	mode := w >> 23 & 3
	if mode != 1 {
		at.disp = offset
	}
	for i, rt := range []register{zeroA64(w), zeroA64(w >> 10)} {
		here := at
		here.disp += int64(i * size)
		switch {
		case w>>22&1 == 0:
			s.storeA64(here, size, rt, vector)
		case !vector:
			s.assign(rt, copyOf(operand{kind: operandMemory, memory: here, size: size}, 0))
		}
	}
	if mode&1 != 0 {
		s.assign(base, copyOf(inRegister(base), offset))
	}
}

// otherStoreA64 is careful with the rest: exclusive and atomic accesses,
// structures of vectors.
func (s *step) otherStoreA64(w uint32) {
	if s.writesMemory {
		s.put(memoryOperand{base: stackOrA64(w >> 5), index: noRegister, known: true}, 16, formula{}, noRegister)
	}
}
