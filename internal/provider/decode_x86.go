package provider

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"
)

// The general-purpose registers of x86-64, in the order of their encoding.
const (
	rax register = iota
	rcx
	rdx
	rbx
	rsp
	rbp
	rsi
	rdi
	r8
	r9
	r10
	r11
)

// callerSavedX86 may change in a call (System V ABI, AMD64 supplement).
func callerSavedX86() registers { return setOf(rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11) }

func processorX86() *processor {
	return &processor{
		decode:            decodeX86,
		arguments:         [3]register{rdi, rsi, rdx},
		stack:             rsp,
		scratch:           setOf(r11),
		maxSize:           15,
		landing:           landingX86,
		returnPastLanding: true,
		cost:              costX86,
		lower:             lowerX86,
		passed:            []register{rdi, rsi, rdx, rcx, r8, r9},
		result:            rax,
		scratchAtCall:     callerSavedX86(),
		pushed:            8,
	}
}

// landingX86 recognises endbr64.
func landingX86(code []byte) (int, bool) {
	return 4, len(code) >= 4 && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa
}

// decodeX86 reads one instruction of x86-64.
func decodeX86(code []byte, address uint64) (instruction, error) {
	if size, ok := hintSizeX86(code); ok {
		return instruction{address: address, size: size}, nil
	}
	in, err := guardedDecode(code)
	// The decoder reports a prefix alone as an instruction without operation
	// where it does not know what follows.
	if err != nil || in.Op == 0 || in.Len <= 0 {
		return instruction{}, fmt.Errorf("%w: cannot decode the instruction at %#x (% x)", ErrUnresolved, address, code[:min(len(code), 8)])
	}
	out := instruction{address: address, size: in.Len}
	if flowX86(&in, &out) {
		return out, nil
	}
	effectsX86(&in, &out)
	return out, nil
}

// guardedDecode turns a panic of the decoder, which sees hostile bytes in a
// privileged process, into an error.
func guardedDecode(code []byte) (in x86asm.Inst, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decoder: %v", r)
		}
	}()
	return x86asm.Decode(code, 64)
}

// hintSizeX86 measures the hints 0F 1E, endbr64 among them, that the decoder
// does not know. It leaves out rdssp (F3 0F 1E /1), which writes a register.
func hintSizeX86(code []byte) (int, bool) {
	if size, ok := landingX86(code); ok {
		return size, true
	}
	prefix := 0
	if len(code) > 0 && (code[0] == 0x66 || code[0] == 0xf2) {
		prefix = 1
	}
	rest := code[prefix:]
	if len(rest) < 3 || rest[0] != 0x0f || rest[1] != 0x1e || rest[2]>>6 != 3 {
		return 0, false
	}
	return prefix + 3, true
}

// flowX86 handles the instructions that leave the straight line.
func flowX86(in *x86asm.Inst, out *instruction) bool {
	switch in.Op {
	case x86asm.JMP:
		out.flow = flowJump
	case x86asm.CALL:
		out.flow = flowCall
		out.clobbers = callerSavedX86()
	case x86asm.RET, x86asm.LRET, x86asm.IRETQ, x86asm.IRETD, x86asm.IRET, x86asm.UD0, x86asm.UD1, x86asm.UD2, x86asm.HLT, x86asm.INT:
		out.flow = flowStop
		return true
	case x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE:
		out.flow = flowBranch
		out.clobbers = setOf(rcx)
	case x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JCXZ, x86asm.JE, x86asm.JECXZ, x86asm.JG,
		x86asm.JGE, x86asm.JL, x86asm.JLE, x86asm.JNE, x86asm.JNO, x86asm.JNP, x86asm.JNS, x86asm.JO,
		x86asm.JP, x86asm.JRCXZ, x86asm.JS, x86asm.XBEGIN:
		out.flow = flowBranch
	default:
		return false
	}
	switch a := in.Args[0].(type) {
	case x86asm.Rel:
		out.target, out.direct = out.end()+uint64(int64(a)), true
	case x86asm.Reg:
		out.indirect = source{kind: sourceSum, base: registerX86(a)}
	case x86asm.Mem:
		out.indirect = loadX86(a, out.end())
	}
	return true
}

// effectsX86 fills in what registers hold afterwards.
func effectsX86(in *x86asm.Inst, out *instruction) {
	out.clobbers = implicitX86(in)
	if readOnlyX86(in.Op) {
		return
	}
	if m, ok := in.Args[0].(x86asm.Mem); ok {
		storeX86(in, m, out)
		return
	}
	to := registerX86(in.Args[0])
	if in.Op == x86asm.XCHG || in.Op == x86asm.XADD || in.Op == x86asm.MULX || in.Op == x86asm.CMPXCHG {
		out.clobbers = out.clobbers.with(registerX86(in.Args[1])).with(to)
		_, out.writesMemory = in.Args[1].(x86asm.Mem)
		return
	}
	if to == noRegister {
		return
	}
	out.set(to, sourceX86(in, to, out.end()))
}

// sourceX86 says where the first operand, a register, gets its content from.
func sourceX86(in *x86asm.Inst, to register, next uint64) source {
	unknown := source{kind: sourceUnknown}
	if in.Op == x86asm.XOR && in.Args[0] == in.Args[1] && width(in.Args[0]) >= 4 {
		return source{kind: sourceConstant}
	}
	if width(in.Args[0]) == 4 && in.Op == x86asm.MOV {
		if imm, ok := in.Args[1].(x86asm.Imm); ok {
			return source{kind: sourceConstant, offset: int64(uint32(imm))}
		}
	}
	if width(in.Args[0]) != 8 {
		return unknown
	}
	switch in.Op {
	case x86asm.MOV:
		switch a := in.Args[1].(type) {
		case x86asm.Imm:
			return source{kind: sourceConstant, offset: int64(a)}
		case x86asm.Reg:
			if r := registerX86(a); r != noRegister {
				return source{kind: sourceSum, base: r}
			}
		case x86asm.Mem:
			return loadX86(a, next)
		}
	case x86asm.LEA:
		if m, ok := in.Args[1].(x86asm.Mem); ok {
			return addressX86(m, next)
		}
	case x86asm.ADD, x86asm.SUB:
		if imm, ok := in.Args[1].(x86asm.Imm); ok {
			if in.Op == x86asm.SUB {
				imm = -imm
			}
			return source{kind: sourceSum, base: to, offset: int64(imm)}
		}
	case x86asm.CMOVA, x86asm.CMOVAE, x86asm.CMOVB, x86asm.CMOVBE, x86asm.CMOVE, x86asm.CMOVG, x86asm.CMOVGE,
		x86asm.CMOVL, x86asm.CMOVLE, x86asm.CMOVNE, x86asm.CMOVNO, x86asm.CMOVNP, x86asm.CMOVNS, x86asm.CMOVO,
		x86asm.CMOVP, x86asm.CMOVS:
		if r := registerX86(in.Args[1]); r != noRegister {
			return source{kind: sourceChoice, base: to, other: r}
		}
	}
	return unknown
}

// addressX86 is the address of a memory operand.
func addressX86(m x86asm.Mem, next uint64) source {
	if m.Index != 0 || m.Segment != 0 {
		return source{kind: sourceUnknown}
	}
	if m.Base == x86asm.RIP {
		return source{kind: sourceConstant, offset: int64(next) + m.Disp}
	}
	if base := registerX86(m.Base); base != noRegister {
		return source{kind: sourceSum, base: base, offset: m.Disp}
	}
	return source{kind: sourceUnknown}
}

// loadX86 is the content of a memory operand of 8 bytes.
func loadX86(m x86asm.Mem, next uint64) source {
	switch at := addressX86(m, next); at.kind {
	case sourceConstant:
		return source{kind: sourceLoad, base: noRegister, offset: at.offset}
	case sourceSum:
		return source{kind: sourceLoad, base: at.base, offset: at.offset}
	default:
		return source{kind: sourceUnknown}
	}
}

func storeX86(in *x86asm.Inst, m x86asm.Mem, out *instruction) {
	value := registerX86(in.Args[1])
	if in.Op != x86asm.MOV || value == noRegister || width(in.Args[1]) != 8 || m.Index != 0 || m.Segment != 0 || registerX86(m.Base) == noRegister {
		out.writesMemory = true
		if in.Op == x86asm.XCHG || in.Op == x86asm.XADD {
			out.clobbers = out.clobbers.with(value)
		}
		return
	}
	out.store(store{base: registerX86(m.Base), offset: m.Disp, value: value})
}

// readOnlyX86 lists the operations that leave their first operand alone.
func readOnlyX86(op x86asm.Op) bool {
	switch op {
	case x86asm.CMP, x86asm.TEST, x86asm.BT, x86asm.NOP, x86asm.PAUSE, x86asm.PUSH, x86asm.PTEST,
		x86asm.COMISS, x86asm.COMISD, x86asm.UCOMISS, x86asm.UCOMISD, x86asm.MFENCE, x86asm.LFENCE, x86asm.SFENCE,
		x86asm.PREFETCHT0, x86asm.PREFETCHT1, x86asm.PREFETCHT2, x86asm.PREFETCHNTA, x86asm.PREFETCHW:
		return true
	default:
		return false
	}
}

// implicitX86 lists the registers an operation writes without naming them.
func implicitX86(in *x86asm.Inst) registers {
	switch in.Op {
	case x86asm.PUSH, x86asm.POP, x86asm.PUSHFQ, x86asm.POPFQ:
		return setOf(rsp)
	case x86asm.LEAVE, x86asm.ENTER:
		return setOf(rsp, rbp)
	case x86asm.MUL, x86asm.DIV, x86asm.IDIV, x86asm.IMUL:
		if in.Op == x86asm.IMUL && in.Args[1] != nil {
			return 0
		}
		return setOf(rax, rdx)
	case x86asm.CBW, x86asm.CWDE, x86asm.CDQE, x86asm.LAHF, x86asm.XLATB:
		return setOf(rax)
	case x86asm.CWD, x86asm.CDQ, x86asm.CQO:
		return setOf(rdx)
	case x86asm.CMPXCHG:
		return setOf(rax)
	case x86asm.CMPXCHG8B, x86asm.CMPXCHG16B, x86asm.RDTSC, x86asm.XGETBV:
		return setOf(rax, rdx)
	case x86asm.RDTSCP:
		return setOf(rax, rcx, rdx)
	case x86asm.CPUID:
		return setOf(rax, rbx, rcx, rdx)
	case x86asm.SYSCALL:
		return setOf(rax, rcx, r11)
	case x86asm.MOVSB, x86asm.MOVSW, x86asm.MOVSD, x86asm.MOVSQ, x86asm.STOSB, x86asm.STOSW, x86asm.STOSD, x86asm.STOSQ,
		x86asm.LODSB, x86asm.LODSW, x86asm.LODSD, x86asm.LODSQ, x86asm.SCASB, x86asm.SCASW, x86asm.SCASD, x86asm.SCASQ,
		x86asm.CMPSB, x86asm.CMPSW, x86asm.CMPSD, x86asm.CMPSQ:
		return setOf(rax, rcx, rsi, rdi)
	default:
		return 0
	}
}

// registerX86 returns the whole register that an operand is (a part of).
func registerX86(a x86asm.Arg) register {
	r, ok := a.(x86asm.Reg)
	if !ok {
		return noRegister
	}
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return register(r - x86asm.RAX)
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return register(r - x86asm.EAX)
	case r >= x86asm.AX && r <= x86asm.R15W:
		return register(r - x86asm.AX)
	case r >= x86asm.AL && r <= x86asm.BL:
		return register(r - x86asm.AL)
	case r >= x86asm.AH && r <= x86asm.BH:
		return register(r - x86asm.AH)
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return register(r-x86asm.SPB) + rsp
	default:
		return noRegister
	}
}

// width is the size of a register operand in bytes, 0 for anything else.
func width(a x86asm.Arg) int {
	r, ok := a.(x86asm.Reg)
	switch {
	case !ok:
		return 0
	case r >= x86asm.RAX && r <= x86asm.R15:
		return 8
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return 4
	case r >= x86asm.AX && r <= x86asm.R15W:
		return 2
	case r >= x86asm.AL && r <= x86asm.R15B:
		return 1
	default:
		return 0
	}
}
