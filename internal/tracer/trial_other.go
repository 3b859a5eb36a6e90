//go:build !amd64

package tracer

import (
	"errors"
	"time"
)

var errNoTrial = errors.New("there is no child to try probes on for this architecture")

// tryReturnProbe has nothing to try: only x86-64 ends return probes in a
// system call.
func tryReturnProbe(*kernelSide, linkKind) error { return nil }

// probedTrial is a program on a child's function.
type probedTrial struct {
	program  string
	isReturn bool
}

// runTrial has no child for this architecture.
func runTrial(*kernelSide, uint32, linkKind, ...probedTrial) (time.Duration, error) {
	return 0, errNoTrial
}
