package provider

import "encoding/binary"

// costA64 follows arch/arm64/kernel/probes/decode-insn.c. What it simulates
// counts as emulated; loads of literals, exclusive accesses, exceptions,
// writes of system registers and most hints are refused. Not executed.
func costA64(code []byte) probeCost {
	if len(code) < 4 {
		return costRefused
	}
	w := binary.LittleEndian.Uint32(code)
	switch {
	case w&0x7c000000 == 0x14000000, w&0xff000000 == 0x54000000, w&0x7c000000 == 0x34000000:
		return costEmulated // b, bl; b.cond; cbz, cbnz, tbz, tbnz
	case w&0x1f000000 == 0x10000000:
		return costEmulated // adr, adrp
	case w&0xfffffc1f == 0xd61f0000, w&0xfffffc1f == 0xd63f0000, w&0xfffffc1f == 0xd65f0000:
		return costEmulated // br, blr, ret
	case w&0xfffff01f == 0xd503201f:
		return hintCostA64(w)
	case w>>25&0xf&0b1110 == 0b1010 && !steppableSystemA64(w):
		return costRefused
	case w&0x3b000000 == 0x18000000, w&0x3f800000 == 0x08000000:
		return costRefused // literals, exclusive accesses
	default:
		return costStepped
	}
}

// hintCostA64 knows the hints of aarch64_insn_is_steppable_hint: nop, bti and
// the ones for pointer authentication.
func hintCostA64(w uint32) probeCost {
	switch hint := w >> 5 & 0x7f; {
	case hint == 0:
		return costLongNop
	case hint == 7, hint == 8, hint == 10, hint == 12, hint == 14:
		return costStepped // xpaclri and the *1716 forms
	case hint >= 24 && hint <= 31:
		return costStepped // paciaz, paciasp, …
	case hint == 32, hint == 34, hint == 36, hint == 38:
		return costStepped // bti
	default:
		return costRefused
	}
}

// steppableSystemA64 are mrs (but for DAIF) and barriers.
func steppableSystemA64(w uint32) bool {
	const mrsDAIF = 0xd53b4220
	if w&0xfff00000 == 0xd5300000 {
		return w&0xffffffe0 != mrsDAIF
	}
	return w&0xfffff000 == 0xd5033000
}
