package tracer

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// initialPIDNamespace is the inode number of the first PID namespace,
// PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
const initialPIDNamespace = 0xEFFFFFFC

// CheckPIDNamespace refuses a root directory in whose /proc processes have other
// numbers than in the kernel: their queues would be taken for those of processes that
// ended.
func CheckPIDNamespace(root string) error {
	process := "1" // Of another /proc than our own only this one is in its namespace for certain.
	if root == "/" {
		process = "self"
	}
	link := rooted(root, "/proc/"+process+"/ns/pid")
	var stat unix.Stat_t
	if err := unix.Stat(link, &stat); err != nil {
		// Without CAP_SYS_PTRACE the namespaces of others are not to be read.
		return nil //nolint:nilerr // What cannot be known is no reason to refuse.
	}
	if stat.Ino == initialPIDNamespace {
		return nil
	}
	return fmt.Errorf("%s is of another PID namespace than the host's first, so that processes cannot be told apart: "+
		"run in the host's (hostPID: true, --pid=host), or mount the host's root directory and name it in root_path", rooted(root, "/proc"))
}

// ownProcess is this process in the PID namespace of a root directory's /proc, 0 where
// that does not tell.
func ownProcess(root string) uint32 {
	target, err := os.Readlink(rooted(root, "/proc/self"))
	if err != nil {
		return 0
	}
	pid, err := strconv.ParseUint(target, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(pid)
}

// isGone reports whether a process has ended for certain: it is not in /proc,
// which may hide those of others, and it cannot be sent a signal either.
func isGone(root string, tgid uint32) bool {
	if _, err := os.Stat(rooted(root, fmt.Sprintf("/proc/%d", tgid))); !os.IsNotExist(err) {
		return false
	}
	// In a namespace of our own the numbers are others; /proc alone tells then.
	return root != "/" || unix.Kill(int(tgid), 0) == unix.ESRCH
}
