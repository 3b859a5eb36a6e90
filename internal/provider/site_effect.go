package provider

// memoryOperand is an address: base + index*scale + disp, each optional.
type memoryOperand struct {
	base, index register
	scale       int64
	disp        int64
	// known is false for addresses that are not followed (segments).
	known bool
}

// operandKind says what an operand is.
type operandKind uint8

const (
	operandNone operandKind = iota
	operandRegister
	operandMemory
)

// operand is something an instruction reads.
type operand struct {
	kind     operandKind
	register register
	memory   memoryOperand
	// size is in bytes, for memory.
	size int
}

func inRegister(r register) operand { return operand{kind: operandRegister, register: r} }

// formulaKind says how a new content follows from what was before.
type formulaKind uint8

const (
	formulaUnknown formulaKind = iota
	// formulaSum is a + scale*b + add.
	formulaSum
	// formulaDifference is a - b + add.
	formulaDifference
	// formulaChoice is a or b+add.
	formulaChoice
	// formulaProduct is a + b times the constant content of c.
	formulaProduct
	// formulaAlign is a rounded down: what becomes of the stack pointer.
	formulaAlign
)

// formula is evaluated on the state before the instruction.
type formula struct {
	kind    formulaKind
	a, b, c operand
	scale   int64
	add     int64
}

// constant is the formula of a number.
func constant(n int64) formula { return formula{kind: formulaSum, add: n} }

// copyOf is the formula of an operand plus a number.
func copyOf(a operand, add int64) formula { return formula{kind: formulaSum, a: a, add: add} }

// effect is one thing an instruction changes: a register, or memory.
type effect struct {
	// to is the register, noRegister for memory.
	to register
	// at and size are the memory.
	at   memoryOperand
	size int
	from formula
	// value is the register stored as it is, noRegister if it is none.
	value register
}

// remade says that 32 bits of a register, in the other order of bytes or the
// lowest 24 of them, are the new content of another one or of itself.
type remade struct {
	to, from register
	swaps    bool
}

// step is an instruction with its effects spelled out.
type step struct {
	instruction
	effects []effect
	// loads are reads from memory into a register that may be those of a jump
	// table's entry.
	loads []operand
	// lost are the registers whose new content is not known.
	lost registers
	// remade is a lost register whose new content is made of one register alone.
	remade remade
	// returns marks the return instruction, repeats those that may be
	// executed several times in a row.
	returns, repeats bool
	cost             probeCost
	// tests is what the flags tell the being zero of afterwards, or what a
	// branch itself tests. keepsFlags marks instructions that leave the flags
	// alone.
	tests      operand
	keepsFlags bool
	// onZero and onNonzero mark branches taken if what was tested is zero, or
	// is not.
	onZero, onNonzero bool
	// compares are two operands that are equal if the branch that follows is
	// taken on zero.
	compares [2]operand
}

// finish makes lost everything that the instruction writes by the account of
// the decoder and that no effect explains.
func (s *step) finish() {
	written := s.clobbers
	for _, a := range s.sets[:s.numSets] {
		written = written.with(a.to)
	}
	for _, e := range s.effects {
		written &^= setOf(e.to)
	}
	s.lost |= written
}

func (s *step) set(to register, from formula) {
	if to != noRegister {
		s.effects = append(s.effects, effect{to: to, from: from, value: noRegister})
	}
}

func (s *step) put(at memoryOperand, size int, from formula, value register) {
	s.effects = append(s.effects, effect{to: noRegister, at: at, size: size, from: from, value: value})
}
