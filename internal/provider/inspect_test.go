package provider

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInspectVerbsByHand(t *testing.T) {
	library, slots, err := InspectVerbs(bytes.NewReader(testVerbs()))
	require.NoError(t, err)
	assert.Equal(t, smallSlots(), slots)
	assert.Equal(t, Verbs, library.Kind)
	require.Len(t, library.Find(SetOps), 1)
	assert.Equal(t, Target{Function: SetOps, Symbol: setOpsName, Offset: 0x1000, EntryOffset: 0x1000 + 11, ReturnOffset: 0x1004},
		library.Find(SetOps)[0], "past endbr64, mov and test, on the first je")
	require.Len(t, library.Find(CreateQP), 1)
	assert.Equal(t, library.Find(CreateQP)[0].Offset, library.Find(CreateQP)[0].EntryOffset, "push at the start")
}

func TestInspectProviderByHand(t *testing.T) {
	library, err := InspectProvider(bytes.NewReader(testProvider()), smallSlots())
	require.NoError(t, err)
	assert.Equal(t, []Target{
		{Function: PostSend, Offset: 0x1000, EntryOffset: 0x1004, ReturnOffset: 0x1004},
		{Function: PostRecv, Offset: 0x1010, EntryOffset: 0x1010, ReturnOffset: 0x1010},
	}, library.Targets)
	assert.Zero(t, library.Unresolved)
	assert.Equal(t, []string{"poll_cq is ibv_cmd_poll_cq of another library: not a target"}, library.Notes)
	assert.Equal(t, "unknown", library.Name)
}

// TestCallForms covers the ways a compiler passes the table and calls.
func TestCallForms(t *testing.T) {
	const table, slot = uint64(testData), uint64(testData + 0x80)
	replace := func(code []byte, patches ...[2]uint64) func(*testELF) {
		return func(e *testELF) {
			last := len(e.funcs) - 1
			e.code = e.code[:e.funcs[last].start-testCode]
			e.funcs = e.funcs[:last]
			at := e.add(code...)
			for _, p := range patches {
				patch(e, at+p[0], p[1])
			}
		}
	}
	tests := map[string]func(*testELF){
		"call through the global offset table (-fno-plt)": replace(
			[]byte{0x48, 0x8d, 0x35, 0, 0, 0, 0, 0xff, 0x15, 0, 0, 0, 0, 0xc3}, [2]uint64{3, table}, [2]uint64{9, slot}),
		"call through a register": replace(
			// mov rax, [rip+slot]; lea rsi, [rip+table]; call rax; ret
			[]byte{0x48, 0x8b, 0x05, 0, 0, 0, 0, 0x48, 0x8d, 0x35, 0, 0, 0, 0, 0xff, 0xd0, 0xc3}, [2]uint64{3, slot}, [2]uint64{10, table}),
		"table through other registers": replace(
			// lea rbx, [rip+table-8]; nop; lea rsi, [rbx+8]; jmp [rip+slot]
			[]byte{0x48, 0x8d, 0x1d, 0, 0, 0, 0, 0x90, 0x48, 0x8d, 0x73, 8, 0xff, 0x25, 0, 0, 0, 0}, [2]uint64{3, table - 8}, [2]uint64{14, slot}),
		"table from a slot of the global offset table": func(e *testELF) {
			replace([]byte{0x48, 0x8b, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0}, [2]uint64{3, testData + 0x88}, [2]uint64{9, slot})(e)
			e.relative(testData+0x88, table)
		},
		"spilled to the stack": replace(
			// lea rax, [rip+table]; mov [rsp+8], rax; mov rsi, [rsp+8]; jmp [rip+slot]
			[]byte{0x48, 0x8d, 0x05, 0, 0, 0, 0, 0x48, 0x89, 0x44, 0x24, 8, 0x48, 0x8b, 0x74, 0x24, 8, 0xff, 0x25, 0, 0, 0, 0},
			[2]uint64{3, table}, [2]uint64{19, slot}),
		"choice of two": replace(
			// lea rsi, [rip+table]; lea rax, [rip+table]; cmovne rsi, rax; jmp [rip+slot]
			[]byte{0x48, 0x8d, 0x35, 0, 0, 0, 0, 0x48, 0x8d, 0x05, 0, 0, 0, 0, 0x48, 0x0f, 0x45, 0xf0, 0xff, 0x25, 0, 0, 0, 0},
			[2]uint64{3, table}, [2]uint64{10, table}, [2]uint64{20, slot}),
		"pointer from memory": func(e *testELF) {
			// mov rsi, [rdi+16]; add rsi, 8; jmp [rip+slot]; some pointer leads to the table less 8
			replace([]byte{0x48, 0x8b, 0x77, 16, 0x48, 0x83, 0xc6, 8, 0xff, 0x25, 0, 0, 0, 0}, [2]uint64{10, slot})(e)
			e.relative(testData+0xf0, table-8)
		},
		"compact relocations": compact,
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			library, err := InspectProvider(bytes.NewReader(testProviderVariant(change)), smallSlots())
			require.NoError(t, err)
			assert.Zero(t, library.Unresolved, library.Notes)
			require.Len(t, library.Targets, 2)
			assert.EqualValues(t, 0x1000, library.Find(PostSend)[0].Offset)
			assert.EqualValues(t, 0x1010, library.Find(PostRecv)[0].Offset)
		})
	}
}

// compact writes the table's relocations the compact way, with the addresses
// in the data.
func compact(e *testELF) {
	kept := e.rela[:0]
	for _, r := range e.rela {
		if elf.R_X86_64(r.Info) != elf.R_X86_64_RELATIVE {
			kept = append(kept, r)
			continue
		}
		binary.LittleEndian.PutUint64(e.data[r.Off-testData:], uint64(r.Addend))
	}
	e.rela = kept
	// An address, then a bitmap of which of the words after it follow.
	e.relr = []uint64{testData + 16, 1 | 1<<1}
}

func TestUnresolved(t *testing.T) {
	tests := map[string]func(*testELF){
		"table from an argument": func(e *testELF) {
			last := e.funcs[len(e.funcs)-1]
			copy(e.code[last.start-testCode:], []byte{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90})
		},
		"member is not a function": func(e *testELF) { e.rela[0].Addend++ },
		"member is data":           func(e *testELF) { e.rela[0].Addend = testData },
		"member is a number":       func(e *testELF) { e.data[0] = 1 },
		"two pointers from memory": func(e *testELF) {
			last := e.funcs[len(e.funcs)-1]
			// mov rsi, [rdi+16]; three nops; jmp stub
			copy(e.code[last.start-testCode:], []byte{0x48, 0x8b, 0x77, 16, 0x90, 0x90, 0x90})
			e.relative(testData+0xf0, testData)
			e.relative(testData+0xf8, testData-8)
			e.data = append(make([]byte, 0), e.data...)
			e.relative(testData+0xe8, testData+0x88)
			e.relative(testData+0x88+24, e.funcs[0].start)
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			library, err := InspectProvider(bytes.NewReader(testProviderVariant(change)), smallSlots())
			require.ErrorIs(t, err, ErrUnresolved)
			assert.Nil(t, library)
		})
	}
}

func TestRefusedInstruction(t *testing.T) {
	for name, code := range map[string][]byte{
		"hlt":                 {0xf4},
		"call":                {0xe8, 0, 0, 0, 0, 0xc3},
		"call past endbr64":   {0xf3, 0x0f, 0x1e, 0xfa, 0xe8, 0, 0, 0, 0, 0xc3},
		"call of an address":  {0xff, 0xd0, 0xc3},
		"lock add of a word":  {0xf0, 0x83, 0x07, 1, 0xc3},
		"padding of prefixes": {0x2e, 0x0f, 0x1f, 0x00, 0xc3},
	} {
		t.Run(name, func(t *testing.T) {
			file := testProviderVariant(func(e *testELF) { e.rela[0].Addend = int64(e.add(code...)) })
			_, err := InspectProvider(bytes.NewReader(file), smallSlots())
			require.ErrorIs(t, err, ErrRefusedInstruction)
		})
	}
}

// TestCallIsPassedOver: a probe on entry goes where there is no call.
func TestCallIsPassedOver(t *testing.T) {
	// mov eax, 1; call; push rbx; pop rbx; ret: a call ends the search.
	file := testProviderVariant(func(e *testELF) {
		e.rela[0].Addend = int64(e.add(0xb8, 1, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x53, 0x5b, 0xc3))
	})
	library, err := InspectProvider(bytes.NewReader(file), smallSlots())
	require.NoError(t, err)
	send := library.Find(PostSend)[0]
	assert.Equal(t, send.Offset, send.EntryOffset)
}

func TestOneFunctionForTwo(t *testing.T) {
	file := testProviderVariant(func(e *testELF) { e.rela[1].Addend = e.rela[0].Addend })
	library, err := InspectProvider(bytes.NewReader(file), smallSlots())
	require.NoError(t, err)
	assert.Empty(t, library.Targets)
	assert.Contains(t, library.Notes[1], "a stub, not a target")
}

func TestRefusedFiles(t *testing.T) {
	verbs, provider := testVerbs(), testProvider()
	change := func(file []byte, at int, b ...byte) []byte {
		file = bytes.Clone(file)
		copy(file[at:], b)
		return file
	}
	tests := map[string]struct {
		file []byte
		want error
	}{
		"empty":                {nil, ErrNotELF},
		"script":               {[]byte("#!/bin/sh\nexit 0\n"), ErrNotELF},
		"32-bit":               {change(verbs, elf.EI_CLASS, byte(elf.ELFCLASS32)), Err32Bit},
		"big-endian":           {change(verbs, elf.EI_DATA, byte(elf.ELFDATA2MSB)), ErrMachine},
		"riscv":                {change(verbs, 18, byte(elf.EM_RISCV)), ErrMachine},
		"provider for verbs":   {provider, ErrNotVerbs},
		"headers cut off":      {verbs[:80], ErrMalformed},
		"headers out of reach": {change(verbs, 32, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), ErrMalformed},
		"many headers":         {change(verbs, 56, 0xff, 0xff), ErrMalformed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := InspectVerbs(bytes.NewReader(test.file))
			require.ErrorIs(t, err, test.want)
		})
	}
	_, err := InspectProvider(bytes.NewReader(verbs), smallSlots())
	require.ErrorIs(t, err, ErrNotVerbs)
	_, err = InspectProvider(bytes.NewReader(nil), smallSlots())
	require.ErrorIs(t, err, ErrNotELF)
}

// TestOverlappingFunctions: unwind tables that tell of a function within another
// one make neither lead to a place within an instruction.
func TestOverlappingFunctions(t *testing.T) {
	for inside := uint64(1); inside < 0x60; inside++ {
		file := testProviderVariant(func(e *testELF) {
			poll := e.add(fromHex(t, loopX86)...)
			e.rela[2] = elf.Rela64{Off: testData + uint64(smallSlots().PollCQ)*8, Info: uint64(elf.R_X86_64_RELATIVE), Addend: int64(poll)}
			e.funcs = append(e.funcs, span{poll + inside, poll + inside + 8})
		})
		library, err := InspectProvider(bytes.NewReader(file), smallSlots())
		require.NoError(t, err)
		checkOffsets(t, file, library)
	}
}

func TestOverlappingSegments(t *testing.T) {
	// The program headers are of 56 bytes from 64 on; the last one becomes a
	// segment of code, its fields are type, flags, file offset, address.
	for name, where := range map[string][2]uint64{"in the file": {testCode + 1, 0x9000}, "in memory": {testDataAt + 8, testCode + 1}} {
		file := testSiteProvider(t)
		last := file[64+4*56:]
		binary.LittleEndian.PutUint32(last, uint32(elf.PT_LOAD))
		binary.LittleEndian.PutUint32(last[4:], uint32(elf.PF_R|elf.PF_X))
		binary.LittleEndian.PutUint64(last[8:], where[0])
		binary.LittleEndian.PutUint64(last[16:], where[1])
		_, err := InspectProvider(bytes.NewReader(file), smallSlots())
		require.ErrorIs(t, err, ErrMalformed, name)
		require.ErrorContains(t, err, "overlaps", name)
	}
}

// TestDigest: the digest is that of the code; the fingerprint notices a
// forged table behind the same code.
func TestDigest(t *testing.T) {
	genuine := testProvider()
	forged := testProviderVariant(func(e *testELF) { e.data[0xf8] = 1 })
	one, err := InspectProvider(bytes.NewReader(genuine), smallSlots())
	require.NoError(t, err)
	two, err := InspectProvider(bytes.NewReader(forged), smallSlots())
	require.NoError(t, err)
	assert.Equal(t, one.Digest, two.Digest)
	assert.NotEqual(t, fingerprintOf(t, genuine), fingerprintOf(t, forged))
	other := testProviderVariant(func(e *testELF) { e.code = append(e.code, 0xcc) })
	three, err := InspectProvider(bytes.NewReader(other), smallSlots())
	require.NoError(t, err)
	assert.NotEqual(t, one.Digest, three.Digest)
}

func fingerprintOf(t *testing.T, file []byte) [32]byte {
	t.Helper()
	img, err := openImage(bytes.NewReader(file))
	require.NoError(t, err)
	require.NoError(t, img.load())
	return img.fingerprint()
}
