package provider

import (
	"errors"
	"fmt"
)

// The reasons for which a file is refused; test with errors.Is.
var (
	// ErrNotELF: the file is not an ELF file.
	ErrNotELF = errors.New("not an ELF file")
	// Err32Bit: a 32-bit ELF file. The layout of its structures is another
	// one; 32-bit processes are not traced.
	Err32Bit = errors.New("32-bit ELF file: 32-bit processes are not traced")
	// ErrMachine: an ELF file for another processor.
	ErrMachine = errors.New("ELF file for a processor that is not supported")
	// ErrMalformed: the file contradicts itself or the ELF specification.
	ErrMalformed = errors.New("malformed ELF file")
	// ErrTooLarge: something in the file is beyond the bounds of this package.
	ErrTooLarge = errors.New("too large to analyse")
	// ErrNotVerbs: the file neither defines nor imports verbs_set_ops.
	ErrNotVerbs = errors.New("not a verbs library")
	// ErrUnresolved: a verbs library of which no function could be told.
	ErrUnresolved = errors.New("functions not resolved")
	// ErrSymbolMismatch: the file has symbols and they contradict the
	// analysis; it is not probed.
	ErrSymbolMismatch = errors.New("symbols contradict the analysis")
	// ErrRefusedInstruction: the kernel refuses a probe on the instruction, or
	// it is a call.
	ErrRefusedInstruction = errors.New("no probe can stand on this instruction")
	// ErrChanged: the path leads to another file than the process has mapped,
	// or the file was changed after it was analysed.
	ErrChanged = errors.New("the path no longer leads to the mapped file, or that was changed")
	// ErrContradiction: of a file with rdma-core linked in, one process says that
	// a function posts, and another one that it polls. It is not probed.
	ErrContradiction = errors.New("processes contradict each other")
	// ErrHangs: reading does not come to an end, as on a network file system
	// without its server. What is there is not looked at until it does.
	ErrHangs = errors.New("reading does not come to an end")
)

// PermissionError says which capability was missing for what.
type PermissionError struct {
	// Op is what was tried, Path on what.
	Op, Path string
	// Capability is what would allow it, such as "CAP_SYS_PTRACE".
	Capability string
	Err        error
}

// Error names the operation, the path and the capability.
func (e *PermissionError) Error() string {
	return fmt.Sprintf("%s %s: %v: grant %s", e.Op, e.Path, e.Err, e.Capability)
}

// Unwrap returns the error of the system.
func (e *PermissionError) Unwrap() error { return e.Err }
