package provider

import "golang.org/x/arch/x86/x86asm"

// lowerX86 spells out the effects of an instruction of x86-64. What it does
// not explain counts as unknown: decodeX86 says what is written.
func lowerX86(code []byte, in instruction) step {
	s := step{instruction: in, cost: costX86(code), remade: remade{to: noRegister}}
	if _, hint := hintSizeX86(code); hint {
		return s
	}
	raw, err := guardedDecode(code)
	if err != nil {
		s.finish()
		return s
	}
	s.repeats = raw.Op == x86asm.LOOP
	for _, p := range raw.Prefix {
		if p == 0 {
			break
		}
		if p&0xff == 0xf3 || p&0xff == 0xf2 {
			s.repeats = s.repeats || stringX86(raw.Op)
		}
	}
	s.returns = raw.Op == x86asm.RET
	s.conditionX86(&raw)
	if in.flow == flowNext {
		s.lowerX86(&raw)
	}
	s.finish()
	return s
}

// conditionX86 fills in what is known of the flags.
func (s *step) conditionX86(raw *x86asm.Inst) {
	switch raw.Op {
	case x86asm.TEST:
		if raw.Args[0] == raw.Args[1] && width(raw.Args[0]) == 8 {
			s.tests = inRegister(registerX86(raw.Args[0]))
		}
	case x86asm.CMP:
		if imm, ok := raw.Args[1].(x86asm.Imm); ok && imm == 0 && raw.DataSize == 64 {
			s.tests, _, _ = readX86(raw.Args[0], raw, s.end())
		}
		a, _, knowsA := readX86(raw.Args[0], raw, s.end())
		b, _, knowsB := readX86(raw.Args[1], raw, s.end())
		if knowsA && knowsB && a.kind != operandNone && b.kind != operandNone {
			s.compares = [2]operand{a, b}
		}
	case x86asm.MOV, x86asm.LEA, x86asm.PUSH, x86asm.MOVSXD, x86asm.MOVZX, x86asm.NOP:
		s.keepsFlags = true
	case x86asm.JE:
		s.onZero = true
	case x86asm.JNE:
		s.onNonzero = true
	}
}

// stringX86 lists the operations on strings, which advance rdi.
func stringX86(op x86asm.Op) bool {
	switch op {
	case x86asm.MOVSB, x86asm.MOVSW, x86asm.MOVSD, x86asm.MOVSQ, x86asm.STOSB, x86asm.STOSW, x86asm.STOSD, x86asm.STOSQ,
		x86asm.LODSB, x86asm.LODSW, x86asm.LODSD, x86asm.LODSQ, x86asm.SCASB, x86asm.SCASW, x86asm.SCASD, x86asm.SCASQ,
		x86asm.CMPSB, x86asm.CMPSW, x86asm.CMPSD, x86asm.CMPSQ:
		return true
	default:
		return false
	}
}

func (s *step) lowerX86(raw *x86asm.Inst) {
	switch raw.Op {
	case x86asm.PUSH:
		s.push(raw)
	case x86asm.POP:
		stack := memoryOperand{base: rsp, index: noRegister, known: true}
		s.set(registerX86(raw.Args[0]), copyOf(operand{kind: operandMemory, memory: stack, size: 8}, 0))
		if registerX86(raw.Args[0]) != rsp {
			s.set(rsp, copyOf(inRegister(rsp), 8))
		}
	case x86asm.LEAVE:
		frame := memoryOperand{base: rbp, index: noRegister, known: true}
		s.set(rsp, copyOf(inRegister(rbp), 8))
		s.set(rbp, copyOf(operand{kind: operandMemory, memory: frame, size: 8}, 0))
	case x86asm.CDQE:
		s.set(rax, copyOf(inRegister(rax), 0))
	case x86asm.XCHG:
		s.exchange(raw)
	case x86asm.BSWAP:
		if raw.DataSize == 32 {
			r := registerX86(raw.Args[0])
			s.remade = remade{to: r, from: r, swaps: true}
		}
	default:
		s.general(raw)
	}
}

func (s *step) push(raw *x86asm.Inst) {
	below := memoryOperand{base: rsp, index: noRegister, disp: -8, known: true}
	value := noRegister
	if width(raw.Args[0]) == 8 {
		value = registerX86(raw.Args[0])
	}
	from := formula{}
	if o, n, ok := readX86(raw.Args[0], raw, s.end()); ok {
		from = copyOf(o, n)
	}
	s.put(below, 8, from, value)
	s.set(rsp, copyOf(inRegister(rsp), -8))
}

func (s *step) exchange(raw *x86asm.Inst) {
	a, b := registerX86(raw.Args[0]), registerX86(raw.Args[1])
	if a != noRegister && b != noRegister && width(raw.Args[0]) >= 4 {
		s.set(a, copyOf(inRegister(b), 0))
		if a != b {
			s.set(b, copyOf(inRegister(a), 0))
		}
		return
	}
	for _, arg := range raw.Args[:2] {
		if m, ok := arg.(x86asm.Mem); ok {
			s.put(memoryX86(m, s.end()), sizeX86(raw), formula{}, noRegister)
		}
	}
}

// general handles what writes its first operand.
func (s *step) general(raw *x86asm.Inst) {
	from := formulaX86(raw, s.end())
	switch to := raw.Args[0].(type) {
	case x86asm.Reg:
		if mask, ok := raw.Args[1].(x86asm.Imm); ok && raw.Op == x86asm.AND && mask == qpNumberMask {
			s.remade = remade{to: registerX86(to), from: registerX86(to)}
		}
		if raw.Op == x86asm.MOVSXD && from.a.kind == operandMemory {
			s.loads = append(s.loads, from.a)
		}
		if from.kind != formulaUnknown && width(to) >= 4 {
			s.set(registerX86(to), from)
		}
	case x86asm.Mem:
		if !s.writesMemory {
			return
		}
		value := noRegister
		if raw.Op == x86asm.MOV && !highByteX86(raw.Args[1]) {
			value = registerX86(raw.Args[1])
		}
		if sizeX86(raw) < 4 {
			from = formula{}
		}
		s.put(memoryX86(to, s.end()), sizeX86(raw), from, value)
	default:
		if s.writesMemory && stringX86(raw.Op) {
			// The length is that of the completion or more: all of it counts.
			s.put(memoryOperand{base: rdi, index: noRegister, known: true}, sizeofWC, formula{}, noRegister)
		}
	}
}

// highByteX86 recognises ah, ch, dh and bh, which are not the low byte.
func highByteX86(a x86asm.Arg) bool {
	r, ok := a.(x86asm.Reg)
	return ok && r >= x86asm.AH && r <= x86asm.BH
}

func sizeX86(raw *x86asm.Inst) int {
	if raw.MemBytes > 0 {
		return raw.MemBytes
	}
	// The decoder does not tell the size of some vector stores.
	if raw.DataSize == 64 {
		return 8
	}
	return 16
}

// formulaX86 says what the first operand becomes.
func formulaX86(raw *x86asm.Inst, next uint64) formula {
	to, _, ok := readX86(raw.Args[0], raw, next)
	if !ok {
		return formula{}
	}
	source, n, ok := readX86(raw.Args[1], raw, next)
	same := raw.Args[0] == raw.Args[1] && source.kind == operandRegister
	switch raw.Op {
	case x86asm.MOVZX:
		// A count kept in 16 bits, as some do: no call delivers more.
		if from := registerX86(raw.Args[1]); from != noRegister && width(raw.Args[1]) == 2 {
			return copyOf(inRegister(from), 0)
		}
		return formula{}
	case x86asm.INC:
		return copyOf(to, 1)
	case x86asm.DEC:
		return copyOf(to, -1)
	case x86asm.NEG:
		return formula{kind: formulaDifference, b: to}
	}
	if !ok {
		return formula{}
	}
	switch raw.Op {
	case x86asm.MOV, x86asm.MOVSXD:
		return copyOf(source, n)
	case x86asm.LEA:
		return leaX86(raw, next)
	case x86asm.ADD:
		if source.kind == operandNone {
			return copyOf(to, n)
		}
		return formula{kind: formulaSum, a: to, b: source, scale: 1}
	case x86asm.SUB:
		switch {
		case same:
			return constant(0)
		case source.kind == operandNone:
			return copyOf(to, -n)
		}
		return formula{kind: formulaDifference, a: to, b: source}
	case x86asm.XOR:
		if same {
			return constant(0)
		}
	case x86asm.OR:
		if source.kind == operandNone && n == -1 {
			return constant(-1)
		}
	case x86asm.AND:
		if source.kind == operandNone && to.register == rsp {
			return formula{kind: formulaAlign, a: to}
		}
		if source.kind == operandNone && n == 0 {
			return constant(0)
		}
	case x86asm.SHL:
		if source.kind == operandNone && n > 0 && n < 32 {
			return formula{kind: formulaSum, b: to, scale: 1 << n}
		}
	case x86asm.IMUL:
		if factor, ok := raw.Args[2].(x86asm.Imm); ok {
			return formula{kind: formulaSum, b: source, scale: int64(factor)}
		}
	default:
		if conditionalMoveX86(raw.Op) {
			return formula{kind: formulaChoice, a: to, b: source}
		}
	}
	return formula{}
}

func conditionalMoveX86(op x86asm.Op) bool {
	switch op {
	case x86asm.CMOVA, x86asm.CMOVAE, x86asm.CMOVB, x86asm.CMOVBE, x86asm.CMOVE, x86asm.CMOVG, x86asm.CMOVGE,
		x86asm.CMOVL, x86asm.CMOVLE, x86asm.CMOVNE, x86asm.CMOVNO, x86asm.CMOVNP, x86asm.CMOVNS, x86asm.CMOVO,
		x86asm.CMOVP, x86asm.CMOVS:
		return true
	default:
		return false
	}
}

// readX86 is an argument as something read: an operand, or with operandNone
// the number.
func readX86(a x86asm.Arg, raw *x86asm.Inst, next uint64) (operand, int64, bool) {
	switch a := a.(type) {
	case x86asm.Imm:
		if raw.DataSize == 32 {
			return operand{}, int64(int32(a)), true
		}
		return operand{}, int64(a), true
	case x86asm.Reg:
		r := registerX86(a)
		return inRegister(r), 0, r != noRegister && (width(a) >= 4 || raw.Op == x86asm.SHL)
	case x86asm.Mem:
		size := sizeX86(raw)
		return operand{kind: operandMemory, memory: memoryX86(a, next), size: size}, 0, size >= 4 || raw.Op == x86asm.LEA
	default:
		return operand{}, 0, false
	}
}

// memoryX86 is the address of a memory operand.
func memoryX86(m x86asm.Mem, next uint64) memoryOperand {
	out := memoryOperand{base: noRegister, index: noRegister, scale: int64(m.Scale), disp: m.Disp, known: true}
	switch {
	case m.Segment != 0 && m.Segment != x86asm.DS && m.Segment != x86asm.SS:
		out.known = false
	case m.Base == x86asm.RIP:
		out.disp += int64(next)
	case m.Base != 0:
		out.base = registerX86(m.Base)
		out.known = out.base != noRegister
	}
	if m.Index != 0 {
		out.index = registerX86(m.Index)
		out.known = out.known && out.index != noRegister
	}
	return out
}

func leaX86(raw *x86asm.Inst, next uint64) formula {
	m, ok := raw.Args[1].(x86asm.Mem)
	if !ok {
		return formula{}
	}
	at := memoryX86(m, next)
	if !at.known {
		return formula{}
	}
	return at.formula()
}

// formula is the address as a number.
func (m memoryOperand) formula() formula {
	f := formula{kind: formulaSum, add: m.disp, scale: m.scale}
	if m.base != noRegister {
		f.a = inRegister(m.base)
	}
	if m.index != noRegister {
		f.b = inRegister(m.index)
	}
	return f
}
