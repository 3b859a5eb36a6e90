package provider

// costX86 follows arch/x86/kernel/uprobes.c: is_prefix_bad and the tables of
// good instructions decide what is refused, branch_setup_xol_ops and
// push_setup_xol_ops what is emulated. Where kernels differ, the strictest.
func costX86(code []byte) probeCost {
	rest, operand16 := code, false
	for len(rest) > 0 {
		switch b := rest[0]; {
		case b == 0x26 || b == 0x2e || b == 0x36 || b == 0x3e || b == 0xf0:
			return costRefused
		case b == 0x66:
			operand16 = true
		case b == 0x64 || b == 0x65 || b == 0x67 || b == 0xf2 || b == 0xf3:
			if len(rest) > 1 && b == 0xf3 && rest[1] == 0x90 {
				return costStepped
			}
		case b&0xf0 == 0x40:
			// REX is the last prefix.
			if len(rest) < 2 {
				return costRefused
			}
			return opcodeCostX86(rest[1:], b, operand16)
		default:
			return opcodeCostX86(rest, 0, operand16)
		}
		rest = rest[1:]
	}
	return costRefused
}

func opcodeCostX86(code []byte, rex byte, operand16 bool) probeCost {
	const rexB = 0x41
	switch b := code[0]; {
	case b == 0x0f:
		return twoByteCostX86(code)
	case refusedX86(b):
		return costRefused
	case b&0xf8 == 0x50 && !operand16 && (rex == 0 || rex == rexB):
		return costEmulated // push
	case b&0xf0 == 0x70 || b == 0xeb || b == 0xe9:
		if operand16 {
			return costRefused
		}
		return costEmulated // jcc, jmp
	case b == 0x90 && rex == 0:
		return costEmulated // nop
	default:
		return costStepped
	}
}

// refusedX86 lists the one-byte opcodes missing in good_insns_64, those that
// are VEX and EVEX prefixes included.
func refusedX86(b byte) bool {
	switch {
	case b < 0x40 && b&7 >= 6:
		return true
	case b >= 0x60 && b <= 0x62, b == 0x66, b == 0x67, b >= 0x6c && b <= 0x6f, b == 0x82, b == 0x9a:
		return true
	case b == 0xc4, b == 0xc5, b >= 0xcc && b <= 0xcf, b >= 0xd4 && b <= 0xd6:
		return true
	case b >= 0xe4 && b <= 0xe7, b == 0xea, b >= 0xec && b <= 0xef:
		return true
	case b == 0xf0, b == 0xf1, b == 0xf4, b == 0xfa, b == 0xfb:
		return true
	default:
		return false
	}
}

func twoByteCostX86(code []byte) probeCost {
	if len(code) < 2 {
		return costRefused
	}
	switch b := code[1]; {
	case b == 0x1f:
		return costLongNop
	case b&0xf0 == 0x80:
		return costEmulated // jcc rel32
	case b < 0x0d, b == 0x0e, b == 0x24, b == 0x26, b == 0x25, b == 0x27:
		return costRefused
	case b == 0x30, b >= 0x34 && b <= 0x37, b == 0xa6, b == 0xa7, b == 0xff:
		return costRefused
	default:
		return costStepped
	}
}
