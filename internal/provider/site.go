package provider

import (
	"debug/elf"
	"fmt"
)

// Site is one instruction inside a function of a provider at which a probe
// sees something finished: a completion delivered by poll_cq, or the work
// request at which a post failed.
type Site struct {
	// Function is PollCQ, PostSend, PostRecv or PostSRQRecv.
	Function Function
	// Offset is the file offset of the instruction, which is a proven start of
	// an instruction.
	Offset uint64
	// Emulated says that every kernel this project runs on emulates the
	// instruction; otherwise it is single-stepped, or with LongNop emulated by
	// newer kernels only.
	Emulated, LongNop bool `json:",omitzero"`
	// IsCall marks a call. Where user shadow stacks are on, some kernels
	// emulate it wrongly and the program dies: use Instead there.
	IsCall bool `json:",omitzero"`
	// Instead is the best instruction for the same event that is no call, nil
	// if there is none or this one is no call.
	Instead *Site `json:",omitzero"`
	// WC is where the struct ibv_wc of the delivered completion is, CQ where the
	// first argument of poll_cq is. For posts, WR is the address of the work
	// request that failed and QP the first argument of the post. A Location
	// of no kind means that it is not known here.
	WC, CQ, WR, QP Location `json:",omitzero"`
	// CQE is where the entry of the CQ is that the completion was made of, by the
	// layout of struct mlx5_cqe64: the number of the queue pair was read from it.
	// Other providers have other layouts and no CQE, nor have posts.
	CQE Location `json:",omitzero"`
	// Overrides are members of the completion that the program has not
	// written yet at this instruction.
	Overrides []FieldOverride `json:",omitzero"`
	// Complete says that what is at WC is final but for Overrides.
	Complete bool `json:",omitzero"`
	// Proven says that WC follows from the values of the program alone:
	// it is the third argument plus 48 times the number of completions
	// delivered before. Otherwise it is inferred from what is stored.
	Proven bool `json:",omitzero"`
}

// PlaceKind says what a Place is.
type PlaceKind uint8

// The kinds of places.
const (
	// PlaceNone is nowhere.
	PlaceNone PlaceKind = iota
	// PlaceRegister is a register.
	PlaceRegister
	// PlaceMemory is memory of the program, in the stack frame.
	PlaceMemory
)

// Place is where a probe finds a number: in a register, or in memory at a
// register (the stack or frame pointer) plus an offset.
type Place struct {
	Kind PlaceKind
	// Register is 0..15 for rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8..r15 on
	// x86-64, 0..30 for x0..x30 and 31 for sp on arm64. See RegisterOffset.
	Register uint8 `json:",omitzero"`
	// Offset is in bytes, for PlaceMemory.
	Offset int32 `json:",omitzero"`
}

// Location is an address that a probe computes from the registers before the
// instruction: the 8 bytes at Base, plus Scale times the 4 bytes at Counter
// (signed), plus Add. Counter of PlaceNone counts as 0.
type Location struct {
	Base    Place
	Counter Place `json:",omitzero"`
	Scale   int32 `json:",omitzero"`
	Add     int64 `json:",omitzero"`
}

// Known reports whether there is a location.
func (l Location) Known() bool { return l.Base.Kind != PlaceNone }

// FieldOverride is a member of struct ibv_wc that is still in a register or a
// constant: Size bytes at Offset of the structure.
type FieldOverride struct {
	Offset, Size uint8
	// From is a register, or PlaceNone for the number Constant.
	From     Place `json:",omitzero"`
	Constant int64 `json:",omitzero"`
}

// SiteKind says how much was found.
type SiteKind uint8

// The kinds of sets.
const (
	// SitesNone: there are no usable sites; Reason says why.
	SitesNone SiteKind = iota
	// SitesPartial: there are sites, but maybe not for every event.
	SitesPartial
	// SitesCounting: there is a site for every event, but not every one tells
	// where the completion and the CQ are, or it is not complete there.
	SitesCounting
	// SitesFull: every event has a site with everything known.
	SitesFull
)

// String returns "none", "partial", "counting" or "full".
func (k SiteKind) String() string {
	switch k {
	case SitesFull:
		return "full"
	case SitesPartial:
		return "partial"
	case SitesCounting:
		return "counting"
	default:
		return "none"
	}
}

// SiteSet holds the sites of one function. Together they execute once for
// each completion that poll_cq delivers and never when it delivers none; for
// posts, only when the post fails. Functions may have sites in common, in a
// helper that several of them call: the locations differ then.
type SiteSet struct {
	Function Function
	// FunctionOffset is Target.Offset of the function.
	FunctionOffset uint64
	Sites          []Site
	Kind           SiteKind
	// Reason says in a sentence what is missing, "" for SitesFull.
	Reason string `json:",omitzero"`
	// Shared says in a sentence which other code of the library also leads to
	// some of the sites, "" if there is none: while that runs (bnxt_re polls
	// when it resizes a CQ, ionic for extended CQs) the sites count what
	// poll_cq does not deliver.
	Shared string `json:",omitzero"`
}

// SitesOf returns the sites of the function at the file offset.
func (l *Library) SitesOf(offset uint64) (SiteSet, bool) {
	for _, s := range l.Sites {
		if s.FunctionOffset == offset {
			return s, true
		}
	}
	return SiteSet{}, false
}

// RegisterOffset returns where struct pt_regs of the kernel keeps a register
// of a Place (arch/x86/include/asm/ptrace.h, arch/arm64/include/uapi/asm/
// ptrace.h), in bytes.
func RegisterOffset(machine elf.Machine, register uint8) (int, error) {
	switch {
	case machine == elf.EM_X86_64 && register < 16:
		return [16]int{80, 88, 96, 40, 152, 32, 104, 112, 72, 64, 56, 48, 24, 16, 8, 0}[register], nil
	case machine == elf.EM_AARCH64 && register < 32:
		return int(register) * 8, nil
	default:
		return 0, fmt.Errorf("%w: no register %d of %v", ErrMachine, register, machine)
	}
}
