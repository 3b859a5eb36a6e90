package provider

import (
	"debug/elf"
	"math/bits"

	"golang.org/x/arch/x86/x86asm"
)

// Reader is what a small function does that reads one number of an object: it
// follows pointers from its argument to the number.
type Reader struct {
	// Offsets are added before each read: all but the last read are of
	// pointers.
	Offsets []int32
	// Size of the number in bytes. Swap says that it is big-endian. It is
	// shifted to the right by Shift bits and masked then.
	Size  int
	Swap  bool
	Shift int
	Mask  uint64
}

// maxReaderSteps bounds the pointers that a reader follows.
const maxReaderSteps = 4

// mostReaderCode bounds the length of a function that only reads, in bytes.
const mostReaderCode = 128

// Reader says what the function at the file offset reads, false when it does
// anything but that. Only x86-64 is understood.
func (e *Extended) Reader(offset uint64) (Reader, bool) {
	address, ok := e.a.img.address(offset)
	if !ok || !e.a.isFunction(address) || e.a.img.machine != elf.EM_X86_64 {
		return Reader{}, false
	}
	return readCode(e.a.img.bytes(address, mostReaderCode))
}

// readCode follows a function from its first byte to its return.
func readCode(code []byte) (Reader, bool) {
	registers := readerState{rdi: {pointer: true}}
	for len(code) > 0 {
		if size, hint := hintSizeX86(code); hint {
			code = code[size:]
			continue
		}
		in, err := guardedDecode(code)
		if err != nil {
			return Reader{}, false
		}
		if in.Op == x86asm.RET {
			return registers[rax].reader()
		}
		if !registers.execute(&in) {
			return Reader{}, false
		}
		code = code[in.Len:]
	}
	return Reader{}, false
}

// readerValue is what a register holds: a pointer that is the argument or was
// read, plus add; or a number that was read.
type readerValue struct {
	Reader
	pointer bool
	add     int64
}

func (v readerValue) reader() (Reader, bool) {
	return v.Reader, !v.pointer && len(v.Offsets) > 0 && len(v.Offsets) <= maxReaderSteps
}

type readerState map[register]readerValue

// execute changes the state as the instruction does, or gives up.
func (r readerState) execute(in *x86asm.Inst) bool {
	to := registerX86(in.Args[0])
	if to == noRegister {
		return false
	}
	v, ok := readerValue{}, false
	switch in.Op {
	case x86asm.MOV, x86asm.MOVZX, x86asm.MOVBE:
		v, ok = r.source(in)
	case x86asm.LEA:
		v, ok = r.address(in.Args[1])
	case x86asm.ADD:
		imm, isImm := in.Args[1].(x86asm.Imm)
		v = r[to]
		v.add += int64(imm)
		ok = isImm && v.usable() && width(in.Args[0]) == 8
		v.pointer = true
	default:
		v, ok = r.compute(in, to)
	}
	if ok {
		r[to] = v
	}
	return ok
}

// usable says that what the register holds may be a pointer.
func (v readerValue) usable() bool {
	return v.pointer || len(v.Offsets) > 0 && v.Size == 8 && !v.Swap && v.Shift == 0 && v.Mask == ^uint64(0)
}

// address is a base and a displacement.
func (r readerState) address(arg x86asm.Arg) (readerValue, bool) {
	m, ok := arg.(x86asm.Mem)
	if !ok || m.Index != 0 || m.Segment != 0 {
		return readerValue{}, false
	}
	v, known := r[registerX86(m.Base)]
	if !known || !v.usable() {
		return readerValue{}, false
	}
	v.add += m.Disp
	v.pointer = true
	return v, v.add == int64(int32(v.add))
}

// source is what a move reads.
func (r readerState) source(in *x86asm.Inst) (readerValue, bool) {
	if from := registerX86(in.Args[1]); from != noRegister {
		v, ok := r[from]
		size := width(in.Args[1])
		if size != 8 {
			ok = ok && !v.pointer && len(v.Offsets) > 0
			v.Mask &= ones(size)
		}
		return v, ok && size > 0
	}
	at, ok := r.address(in.Args[1])
	size := in.MemBytes
	if !ok || size != 1 && size != 2 && size != 4 && size != 8 || width(in.Args[0]) < 4 {
		return readerValue{}, false
	}
	offsets := append(append([]int32(nil), at.Offsets...), int32(at.add))
	return readerValue{Reader: Reader{Offsets: offsets, Size: size, Swap: in.Op == x86asm.MOVBE, Mask: ones(size)}}, true
}

// compute is arithmetic on a number that was read.
func (r readerState) compute(in *x86asm.Inst, to register) (readerValue, bool) {
	v, known := r[to]
	imm, isImm := in.Args[1].(x86asm.Imm)
	size := width(in.Args[0])
	if !known || v.pointer || len(v.Offsets) == 0 {
		return v, false
	}
	whole := v.Shift == 0 && v.Mask == ones(v.Size) && size == v.Size
	switch {
	case in.Op == x86asm.BSWAP:
		v.Swap = !v.Swap
		return v, whole
	case (in.Op == x86asm.ROL || in.Op == x86asm.ROR) && isImm && imm == 8 && size == 2:
		v.Swap = !v.Swap
		return v, whole
	case in.Op == x86asm.AND && isImm && size >= 4:
		v.Mask &= uint64(imm) & ones(size)
		return v, true
	case in.Op == x86asm.SHR && isImm && size >= 4 && imm < 64:
		v.Shift += int(imm)
		v.Mask = v.Mask & ones(size) >> uint(imm)
		return v, v.Shift < 64 && bits.OnesCount64(v.Mask) > 0
	default:
		return v, false
	}
}

// ones is the mask of a number of bytes.
func ones(size int) uint64 { return ^uint64(0) >> (64 - 8*uint(size)) }
