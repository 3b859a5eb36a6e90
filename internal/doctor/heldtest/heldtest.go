// Package heldtest makes a test binary a process that the kernel holds: who has a child
// by vfork(2) is in state D until that ends.
package heldtest

import (
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// variable names the sleeps of the process that a test binary is to be.
const variable = "RDMARADAR_TEST_HELD"

// Forever is one sleep without an end, Shortly one short sleep after the other, as of a
// thread that waits for pages of memory.
const (
	Forever = "forever"
	Shortly = "shortly"
)

// short is how long a short sleep is.
const short = 15 * time.Millisecond

// Command is the test binary as such a process. It goes on until it is killed.
func Command(sleeps string) *exec.Cmd {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), variable+"="+sleeps)
	return command
}

// Main is for TestMain. It returns where no such process is asked for.
func Main() {
	switch os.Getenv(variable) {
	case Forever:
		sleep(nil)
	case Shortly:
		end := unix.NsecToTimespec(short.Nanoseconds())
		for {
			sleep(&end)
		}
	}
}

// sleep is in state D until the child ends, at once after this process if not before.
func sleep(end *unix.Timespec) {
	// Nothing of Go's runtime but this thread is there in the child.
	child, _, errno := syscall.RawSyscall(unix.SYS_CLONE, unix.CLONE_VFORK|uintptr(unix.SIGCHLD), 0, 0)
	if errno != 0 {
		panic(errno)
	}
	if child != 0 {
		_, _, _ = syscall.RawSyscall6(unix.SYS_WAIT4, child, 0, 0, 0, 0, 0)
		return
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, uintptr(unsafe.Pointer(end)), 0, 0, 0)
		if end != nil {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
}
