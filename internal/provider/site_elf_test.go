package provider

import (
	"debug/elf"
	"encoding/binary"
	"testing"
)

// testSiteProvider is a provider whose poll_cq and post_send have sites.
func testSiteProvider(t testing.TB) []byte {
	t.Helper()
	return testProviderVariant(func(e *testELF) {
		poll := e.add(fromHex(t, loopX86)...)
		send := e.add(fromHex(t, postX86)...)
		slots := smallSlots()
		e.rela[0].Addend = int64(send)
		e.rela[2] = elf.Rela64{Off: testData + uint64(slots.PollCQ)*8, Info: uint64(elf.R_X86_64_RELATIVE), Addend: int64(poll)}
	})
}

// testSiteProviderA64 is the same for arm64.
func testSiteProviderA64(t testing.TB) []byte {
	t.Helper()
	e := &testELF{symbols: []testSymbol{{setOpsName, 0, 0}}, data: make([]byte, 0x100)}
	const slot = testData + 0x80 // of verbs_set_ops; the table is at testData
	words := func(code ...uint32) []byte {
		var b []byte
		for _, w := range code {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		return b
	}
	poll := e.add(fromHex(t, loopA64)...)
	send := e.add(fromHex(t, postA64)...)
	// The data is four pages on. adrp x16, slot; ldr x17, [x16, #0x80];
	// add x16, x16, #0x80; br x17
	stub := e.add(words(0x90000030, 0xf9404211, 0x91020210, 0xd61f0220)...)
	// adrp x1, table; add x1, x1, #0; b stub
	caller := testCode + uint64(len(e.code)+15)&^15
	e.add(words(0x90000021, 0x91000021, 0x14000000|uint32(stub-caller-8)>>2&0x3ffffff)...)
	slots := smallSlots()
	relative := func(slot int, function uint64) elf.Rela64 {
		return elf.Rela64{Off: testData + uint64(slot)*8, Info: uint64(elf.R_AARCH64_RELATIVE), Addend: int64(function)}
	}
	e.rela = []elf.Rela64{relative(slots.PollCQ, poll), relative(slots.PostSend, send), {Off: slot, Info: 1<<32 | uint64(elf.R_AARCH64_JUMP_SLOT)}}
	file := e.build()
	binary.LittleEndian.PutUint16(file[18:], uint16(elf.EM_AARCH64))
	return file
}
