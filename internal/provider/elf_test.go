package provider

import (
	"debug/elf"
	"encoding/binary"
)

// testELF is a small ELF file made by hand: one read-only and executable
// segment, one writable one that becomes read-only after relocation.
type testELF struct {
	code  []byte
	funcs []span
	// data is the writable segment; its dynamic section is appended.
	data    []byte
	symbols []testSymbol
	rela    []elf.Rela64
	// relr are addresses of words relocated the compact way.
	relr []uint64
}

type testSymbol struct {
	name  string
	value uint64
	size  uint64
}

// Where the parts are. Virtual addresses of the second segment differ from
// its file offsets, as they do in real files.
const (
	testCode   = 0x1000
	testData   = 0x5000
	testDataAt = 0x3000
)

func (e *testELF) build() []byte {
	le := binary.LittleEndian
	out := make([]byte, testDataAt)
	copy(out[testCode:], e.code)
	put := func(at int, v any) int {
		n, err := binary.Encode(out[at:], le, v)
		if err != nil {
			panic(err)
		}
		return at + n
	}

	at := 0x200
	dynsym := at
	strtab := []byte{0}
	at = put(at, elf.Sym64{})
	for _, s := range e.symbols {
		section := uint16(0)
		if s.value != 0 {
			section = 1
		}
		at = put(at, elf.Sym64{Name: uint32(len(strtab)), Info: 0x12, Shndx: section, Value: s.value, Size: s.size})
		strtab = append(append(strtab, s.name...), 0)
	}
	dynstr := at
	at += copy(out[at:], strtab)
	at = (at + 7) &^ 7
	hash := at
	at = put(at, []uint32{1, uint32(len(e.symbols) + 1), 0})
	at = (at + 7) &^ 7
	rela := at
	for _, r := range e.rela {
		at = put(at, r)
	}
	relr := at
	for _, r := range e.relr {
		at = put(at, r)
	}
	header := e.frames(out, at)

	data := append([]byte(nil), e.data...)
	for len(data)%16 != 0 {
		data = append(data, 0)
	}
	dynamicAt := uint64(len(data))
	dynamic := []elf.Dyn64{
		{Tag: int64(elf.DT_SYMTAB), Val: uint64(dynsym)},
		{Tag: int64(elf.DT_STRTAB), Val: uint64(dynstr)},
		{Tag: int64(elf.DT_STRSZ), Val: uint64(len(strtab))},
		{Tag: int64(elf.DT_HASH), Val: uint64(hash)},
		{Tag: int64(elf.DT_RELA), Val: uint64(rela)},
		{Tag: int64(elf.DT_RELASZ), Val: uint64(len(e.rela) * 24)},
		{Tag: 36, Val: uint64(relr)},
		{Tag: 35, Val: uint64(len(e.relr) * 8)},
		{},
	}
	for _, d := range dynamic {
		data = le.AppendUint64(le.AppendUint64(data, uint64(d.Tag)), d.Val)
	}
	programs := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: 5, Filesz: uint64(testDataAt), Memsz: uint64(testDataAt)},
		{Type: uint32(elf.PT_LOAD), Flags: 6, Off: testDataAt, Vaddr: testData, Filesz: uint64(len(data)), Memsz: uint64(len(data))},
		{
			Type: uint32(elf.PT_DYNAMIC), Flags: 6, Off: testDataAt + dynamicAt, Vaddr: testData + dynamicAt,
			Filesz: uint64(len(dynamic) * 16), Memsz: uint64(len(dynamic) * 16),
		},
		{Type: uint32(elf.PT_GNU_EH_FRAME), Flags: 4, Off: uint64(header), Vaddr: uint64(header), Filesz: 0x400, Memsz: 0x400},
		{Type: uint32(elf.PT_GNU_RELRO), Flags: 4, Off: testDataAt, Vaddr: testData, Filesz: uint64(len(data)), Memsz: uint64(len(data))},
	}
	ident := [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1}
	put(0, elf.Header64{
		Ident: ident, Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1,
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(programs)), Shentsize: 64,
	})
	at = 64
	for _, p := range programs {
		at = put(at, p)
	}
	return append(out, data...)
}

// frames writes .eh_frame and .eh_frame_hdr for the functions.
func (e *testELF) frames(out []byte, at int) int {
	le := binary.LittleEndian
	at = (at + 7) &^ 7
	common := at
	cie := []byte{16, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0, 0, 0}
	at += copy(out[at:], cie)
	entries := at
	for _, f := range e.funcs {
		le.PutUint32(out[at:], 16)
		le.PutUint32(out[at+4:], uint32(at+4-common))
		le.PutUint32(out[at+8:], uint32(int32(int64(f.start)-int64(at+8))))
		le.PutUint32(out[at+12:], uint32(f.end-f.start))
		at += 20
	}
	header := at + 4
	at = header
	copy(out[at:], []byte{1, 0x1b, 0x03, 0x3b})
	le.PutUint32(out[at+4:], uint32(int32(common-(at+4))))
	le.PutUint32(out[at+8:], uint32(len(e.funcs)))
	for i, f := range e.funcs {
		le.PutUint32(out[at+12+8*i:], uint32(int32(int64(f.start)-int64(header))))
		le.PutUint32(out[at+16+8*i:], uint32(int32(entries+20*i-header)))
	}
	return header
}

// add appends a function and returns its address.
func (e *testELF) add(code ...byte) uint64 {
	for len(e.code)%16 != 0 {
		e.code = append(e.code, 0xcc)
	}
	start := uint64(testCode + len(e.code))
	e.code = append(e.code, code...)
	e.funcs = append(e.funcs, span{start, start + uint64(len(code))})
	return start
}

// relative makes the loader write an address of the file.
func (e *testELF) relative(at, value uint64) {
	e.rela = append(e.rela, elf.Rela64{Off: at, Info: uint64(elf.R_X86_64_RELATIVE), Addend: int64(value)})
}

// symbolic makes the loader write the address of the symbol with that index.
func (e *testELF) symbolic(at uint64, kind elf.R_X86_64, index uint64) {
	e.rela = append(e.rela, elf.Rela64{Off: at, Info: index<<32 | uint64(kind)})
}

// smallSlots is the layout of the table that testVerbs takes.
func smallSlots() Slots {
	return Slots{Count: 8, PollCQ: 1, PostRecv: 2, PostSend: 3, PostSRQRecv: 5}
}

// testVerbs is a libibverbs with a table of eight members.
func testVerbs() []byte {
	e := &testELF{}
	const context = 64
	offsets := []uint32{8, contextPollCQ, contextPostRecv, contextPostSend, 112, contextPostSRQRecv, 184, contextLastOp}
	code := []byte{0xf3, 0x0f, 0x1e, 0xfa} // endbr64
	for slot, offset := range offsets {
		code = append(code,
			0x48, 0x8b, 0x46, byte(slot*8), // mov rax, [rsi+8*slot]
			0x48, 0x85, 0xc0, // test rax, rax
			0x74, 0x07, // je over the store
			0x48, 0x89, 0x87) // mov [rdi+offset], rax
		code = binary.LittleEndian.AppendUint32(code, context+offset)
	}
	setOps := e.add(append(code, 0xc3)...)
	create := e.add(0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3) // push rbp; mov rbp, rsp; pop rbp; ret
	e.symbols = []testSymbol{{setOpsName, setOps, uint64(len(code)) + 1}, {"ibv_create_qp", create, 6}}
	e.data = make([]byte, 64)
	return e.build()
}

// testProvider is a provider with one table, whose poll_cq is an import.
func testProvider() []byte { return testProviderVariant(nil) }

// testProviderVariant lets a test change the file before it is built.
func testProviderVariant(change func(*testELF)) []byte {
	e := &testELF{}
	e.symbols = []testSymbol{{setOpsName, 0, 0}, {"ibv_cmd_poll_cq", 0, 0}}
	const table, slot = testData, testData + 0x80 // the table, then the slot of verbs_set_ops
	e.data = make([]byte, 0x100)
	send := e.add(0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x54, 0x41, 0x5c, 0xc3) // endbr64; push r12; pop r12; ret
	recv := e.add(0x31, 0xc0, 0xc3)                                     // xor eax, eax; ret
	// jmp [rip+slot]
	stub := e.add(0xff, 0x25, 0, 0, 0, 0)
	patch(e, stub+2, slot)
	// lea rsi, [rip+table]; jmp stub
	caller := e.add(0x48, 0x8d, 0x35, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0)
	patch(e, caller+3, table)
	patch(e, caller+8, stub)
	s := smallSlots()
	e.relative(table+uint64(s.PostSend)*8, send)
	e.relative(table+uint64(s.PostRecv)*8, recv)
	e.symbolic(table+uint64(s.PollCQ)*8, elf.R_X86_64_64, 2)
	e.symbolic(slot, elf.R_X86_64_JMP_SLOT, 1)
	if change != nil {
		change(e)
	}
	return e.build()
}

// patch writes a displacement that, relative to the byte after it, leads to
// the target.
func patch(e *testELF, at, target uint64) {
	binary.LittleEndian.PutUint32(e.code[at-testCode:], uint32(int32(int64(target)-int64(at+4))))
}
