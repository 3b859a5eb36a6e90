package provider

// probeCost is what the kernel does with a probe on an instruction.
type probeCost uint8

const (
	// costStepped: the original instruction is executed out of line and
	// single-stepped, which costs a second trap.
	costStepped probeCost = iota
	// costEmulated: every kernel this project runs on emulates it.
	costEmulated
	// costLongNop: newer kernels emulate it, older ones single-step it.
	costLongNop
	// costRefused: the kernel refuses to attach.
	costRefused
)
