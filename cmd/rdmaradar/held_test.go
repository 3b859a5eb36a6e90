package main

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

// beHeld is a process in state D until it is killed: who has a child by vfork(2) is held
// until that ends.
func beHeld() {
	// Nothing of Go's runtime but this thread is there in the child.
	child, _, errno := syscall.RawSyscall(unix.SYS_CLONE, unix.CLONE_VFORK|uintptr(unix.SIGCHLD), 0, 0)
	if errno != 0 {
		panic(errno)
	}
	if child != 0 {
		return
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_PPOLL, 0, 0, 0)
	}
}

func TestOneThatSleepsIsNotHeld(t *testing.T) {
	assert.False(t, isHeld(os.Getpid()))
	assert.False(t, isHeld(-1), "no such process")
}
