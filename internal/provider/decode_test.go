package provider

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/arch/arm64/arm64asm"
)

func TestDecodeX86(t *testing.T) {
	const at = 0x1000
	tests := map[string]struct {
		code string
		want instruction
	}{
		"endbr64":               {"f30f1efa", instruction{size: 4}},
		"bnd jmp [rip]":         {"f2ff2510000000", instruction{size: 7, flow: flowJump, indirect: source{kind: sourceLoad, base: noRegister, offset: at + 7 + 16}}},
		"notrack jmp rax":       {"3effe0", instruction{size: 3, flow: flowJump, indirect: source{kind: sourceSum, base: rax}}},
		"je":                    {"7405", instruction{size: 2, flow: flowBranch, target: at + 7, direct: true}},
		"jne rel32":             {"0f85fbffffff", instruction{size: 6, flow: flowBranch, target: at + 1, direct: true}},
		"call":                  {"e8fbffffff", instruction{size: 5, flow: flowCall, target: at, direct: true, clobbers: callerSavedX86()}},
		"ret":                   {"c3", instruction{size: 1, flow: flowStop}},
		"ud2":                   {"0f0b", instruction{size: 2, flow: flowStop}},
		"int3":                  {"cc", instruction{size: 1, flow: flowStop}},
		"lea rsi, [rip+16]":     {"488d3510000000", set(7, rsi, source{kind: sourceConstant, offset: at + 7 + 16})},
		"lea rsi, [rbx-8]":      {"488d73f8", set(4, rsi, source{kind: sourceSum, base: rbx, offset: -8})},
		"lea rsi, [rbx+rcx]":    {"488d340b", instruction{size: 4, clobbers: setOf(rsi)}},
		"mov r9, rdi":           {"4989f9", set(3, r9, source{kind: sourceSum, base: rdi})},
		"mov esi, edi":          {"89fe", instruction{size: 2, clobbers: setOf(rsi)}},
		"mov rax, fs:[40]":      {"64488b042528000000", instruction{size: 9, clobbers: setOf(rax)}},
		"mov rax, [rip]":        {"488b0500000000", set(7, rax, source{kind: sourceLoad, base: noRegister, offset: at + 7})},
		"mov rax, [rsi+8]":      {"488b4608", set(4, rax, source{kind: sourceLoad, base: rsi, offset: 8})},
		"mov [rdi+8], rax":      {"48894708", instruction{size: 4, numStores: 1, writesMemory: true, stores: [2]store{{base: rdi, offset: 8, value: rax}}}},
		"mov [rdi], eax":        {"8907", instruction{size: 2, writesMemory: true}},
		"movups [rdi], xmm0":    {"0f1107", instruction{size: 3, writesMemory: true}},
		"add rsi, 8":            {"4883c608", set(4, rsi, source{kind: sourceSum, base: rsi, offset: 8})},
		"sub rsi, 8":            {"4883ee08", set(4, rsi, source{kind: sourceSum, base: rsi, offset: -8})},
		"xor esi, esi":          {"31f6", set(2, rsi, source{kind: sourceConstant})},
		"mov esi, 5":            {"be05000000", set(5, rsi, source{kind: sourceConstant, offset: 5})},
		"cmovne rsi, rax":       {"480f45f0", set(4, rsi, source{kind: sourceChoice, base: rsi, other: rax})},
		"cmp rsi, rax":          {"4839c6", instruction{size: 3}},
		"test rax, rax":         {"4885c0", instruction{size: 3}},
		"mov ah, 1":             {"b401", instruction{size: 2, clobbers: setOf(rax)}},
		"mov sil, 1":            {"40b601", instruction{size: 3, clobbers: setOf(rsi)}},
		"xchg rax, rsi":         {"4896", instruction{size: 2, clobbers: setOf(rax, rsi)}},
		"div rcx":               {"48f7f1", instruction{size: 3, clobbers: setOf(rax, rdx, rcx)}},
		"rep movsb":             {"f3a4", instruction{size: 2, clobbers: setOf(rax, rcx, rsi, rdi), writesMemory: true}},
		"push r12":              {"4154", instruction{size: 2, clobbers: setOf(rsp)}},
		"pop r12":               {"415c", instruction{size: 2, clobbers: setOf(rsp, 12)}},
		"vmovdqu ymm0, [rdi]":   {"c5fe6f07", instruction{size: 4}},
		"vmovdqu [rdi], ymm0":   {"c5fe7f07", instruction{size: 4, writesMemory: true}},
		"cs nop word":           {"662e0f1f840000000000", instruction{size: 10}},
		"mulx rsi, rdi, rax":    {"c4e2c3f6f0", instruction{size: 5, clobbers: setOf(rsi, rdi)}},
		"lock cmpxchg [rdi], e": {"f00fb10f", instruction{size: 4, clobbers: setOf(rax), writesMemory: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, err := hex.DecodeString(test.code)
			require.NoError(t, err)
			test.want.address = at
			got, err := decodeX86(append(code, make([]byte, 16)...), at)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func set(size int, to register, from source) instruction {
	return instruction{size: size, numSets: 1, sets: [2]assignment{{to, from}}}
}

func TestDecodeX86Refuses(t *testing.T) {
	for _, code := range []string{"", "f3", "f30f1ec8", "0f04", "ffff"} {
		raw, err := hex.DecodeString(code)
		require.NoError(t, err)
		_, err = decodeX86(raw, 0)
		assert.Error(t, err, code)
	}
}

// TestDecodeA64 holds the hand-written fields against golang.org/x/arch over
// all the code of the packages: where that decoder says that an instruction
// writes a register, ours must know it, and branches must agree.
func TestDecodeA64(t *testing.T) {
	cache := packageCache(t)
	var packages []pinned
	for _, p := range pinnedPackages(t) {
		if p.suite == "bookworm" && p.arch == "arm64" {
			packages = append(packages, p)
		}
	}
	compared := 0
	for name, path := range sharedObjects(t, unpack(t, cache, packages)) {
		img, err := openImage(readAll(t, path))
		require.NoError(t, err)
		require.NoError(t, img.load())
		frames, err := img.readFrames()
		require.NoError(t, err)
		for _, start := range frames.starts {
			bounds, _ := frames.function(start)
			code := img.bytes(bounds.start, int(bounds.end-bounds.start))
			for ; len(code) >= 4; code = code[4:] {
				compared += compareA64(t, name, code[:4])
			}
		}
	}
	assert.Greater(t, compared, 100_000)
}

func compareA64(t *testing.T, name string, code []byte) int {
	t.Helper()
	const at = 1 << 32
	reference, err := arm64asm.Decode(code)
	if err != nil {
		return 0
	}
	got, err := decodeA64(code, at)
	require.NoError(t, err)
	op := reference.Op.String()
	text := reference.String()
	for _, a := range reference.Args {
		if rel, ok := a.(arm64asm.PCRel); ok && got.direct {
			require.EqualValues(t, at+int64(rel), got.target, "%s: %s", name, text)
		}
	}
	require.Equal(t, flowOfA64(op, reference.Args[0]), got.flow, "%s: %s", name, text)
	if to, ok := writtenA64(op, &reference); ok {
		require.True(t, got.writes(to), "%s: %s (%08x) writes x%d", name, text, binary.LittleEndian.Uint32(code), to)
	}
	for _, compares := range []string{"CCM", "CMP", "CMN", "TST", "CB", "TB"} {
		if strings.HasPrefix(op, compares) {
			require.True(t, got.changesOnly(0), "%s: %s (%08x) writes nothing but flags", name, text, binary.LittleEndian.Uint32(code))
		}
	}
	if op == "ADRP" && got.numSets == 1 {
		require.EqualValues(t, at+int64(reference.Args[1].(arm64asm.PCRel)), got.sets[0].from.offset, text)
	}
	return 1
}

func flowOfA64(op string, first arm64asm.Arg) flow {
	switch op {
	case "B":
		if _, conditional := first.(arm64asm.Cond); conditional {
			return flowBranch
		}
		return flowJump
	case "BR":
		return flowJump
	case "CBZ", "CBNZ", "TBZ", "TBNZ":
		return flowBranch
	case "BL", "BLR":
		return flowCall
	case "RET", "ERET", "BRK", "HLT":
		return flowStop
	default:
		return flowNext
	}
}

// writtenA64 is the general register that is the destination.
func writtenA64(op string, in *arm64asm.Inst) (register, bool) {
	readers := []string{"ST", "CMP", "CMN", "TST", "CCM", "CB", "TB", "PRFM", "MSR", "B", "RET", "FCMP", "SVC", "HINT", "SYS", "DSB", "DMB", "ISB", "NOP"}
	for _, r := range readers {
		if strings.HasPrefix(op, r) && !strings.HasPrefix(op, "BI") && !strings.HasPrefix(op, "BF") {
			return 0, false
		}
	}
	var number uint16
	switch a := in.Args[0].(type) {
	case arm64asm.Reg:
		number = uint16(a)
	case arm64asm.RegSP:
		number = uint16(a)
	default:
		return 0, false
	}
	switch {
	case number < 31:
		return register(number), true // w
	case number > 31 && number < 63:
		return register(number - 32), true // x
	default:
		return 0, false
	}
}

func TestCostX86(t *testing.T) {
	tests := map[string]struct {
		code string
		want probeCost
	}{
		"push rbp":        {"55", costEmulated},
		"push r12":        {"4154", costEmulated},
		"push ax":         {"6650", costStepped},
		"je":              {"7400", costEmulated},
		"je rel32":        {"0f8400000000", costEmulated},
		"jmp rel8":        {"eb00", costEmulated},
		"jmp rel32":       {"e900000000", costEmulated},
		"bnd jmp":         {"f2e900000000", costEmulated},
		"jmp with 66":     {"66e90000", costRefused},
		"nop":             {"90", costEmulated},
		"66 nop":          {"6690", costEmulated},
		"xchg r8, rax":    {"4990", costStepped},
		"pause":           {"f390", costStepped},
		"long nop":        {"0f1f440000", costLongNop},
		"cs nop":          {"662e0f1f840000000000", costRefused},
		"notrack jmp":     {"3effe0", costRefused},
		"lock add":        {"f04801", costRefused},
		"vmovdqu":         {"c5fe6f07", costRefused},
		"vex3":            {"c4e2c3f6f0", costRefused},
		"evex":            {"62f17c4810", costRefused},
		"endbr64":         {"f30f1efa", costStepped},
		"mov rbp, rsp":    {"4889e5", costStepped},
		"fs load":         {"64488b042528000000", costStepped},
		"syscall":         {"0f05", costRefused},
		"ud2":             {"0f0b", costRefused},
		"hlt":             {"f4", costRefused},
		"int3":            {"cc", costRefused},
		"prefix only":     {"66", costRefused},
		"rex only":        {"48", costRefused},
		"nothing":         {"", costRefused},
		"two-byte prefix": {"0f", costRefused},
	}
	for name, test := range tests {
		code, err := hex.DecodeString(test.code)
		require.NoError(t, err)
		assert.Equal(t, test.want, costX86(code), name)
	}
}

func TestCostA64(t *testing.T) {
	tests := map[string]struct {
		word uint32
		want probeCost
	}{
		"b":               {0x14000001, costEmulated},
		"bl":              {0x94000001, costEmulated},
		"b.eq":            {0x54000020, costEmulated},
		"cbz x0":          {0xb4000020, costEmulated},
		"tbnz w0":         {0x37000020, costEmulated},
		"adrp":            {0x90000000, costEmulated},
		"ret":             {0xd65f03c0, costEmulated},
		"blr x1":          {0xd63f0020, costEmulated},
		"nop":             {0xd503201f, costLongNop},
		"bti c":           {0xd503245f, costStepped},
		"paciasp":         {0xd503233f, costStepped},
		"yield":           {0xd503203f, costRefused},
		"ldr literal":     {0x58000040, costRefused},
		"ldxr":            {0xc85f7c20, costRefused},
		"stxr":            {0xc8027c20, costRefused},
		"svc":             {0xd4000001, costRefused},
		"brk":             {0xd4200000, costRefused},
		"mrs tpidr_el0":   {0xd53bd040, costStepped},
		"mrs daif":        {0xd53b4220, costRefused},
		"msr":             {0xd51bd040, costRefused},
		"dmb":             {0xd5033bbf, costStepped},
		"stp x29, x30":    {0xa9bf7bfd, costStepped},
		"ldr x0, [x1, 8]": {0xf9400420, costStepped},
	}
	for name, test := range tests {
		assert.Equal(t, test.want, costA64(binary.LittleEndian.AppendUint32(nil, test.word)), name)
	}
	assert.Equal(t, costRefused, costA64(nil))
}
