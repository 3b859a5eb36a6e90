package tracer

import (
	"fmt"
	"strings"
)

// CapabilityError says which capabilities the process lacks, and for what.
type CapabilityError struct {
	// Missing lists the capabilities by name, such as "CAP_BPF".
	Missing []string
	// Op is what they are needed for.
	Op string
	// Err is the error of the system, nil when it was not even tried.
	Err error
}

// Error names what was tried and every missing capability.
func (e *CapabilityError) Error() string {
	text := fmt.Sprintf("%s needs %s: grant it to the process, or run it as root", e.Op, strings.Join(e.Missing, " and "))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the error of the system, nil if there was none.
func (e *CapabilityError) Unwrap() error { return e.Err }

// KernelError says what the running kernel lacks.
type KernelError struct {
	// Need is what is missing, in words.
	Need string
	// Release is the running kernel.
	Release string
	Err     error
}

// Error names the kernel and what it lacks.
func (e *KernelError) Error() string {
	text := fmt.Sprintf("the running kernel %s lacks %s", e.Release, e.Need)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the error of the system, nil if there was none.
func (e *KernelError) Unwrap() error { return e.Err }
