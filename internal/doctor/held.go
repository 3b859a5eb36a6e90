package doctor

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// heldLooks is how often a thread must be found in the same sleep, heldPause the time
// between: one that waits for a page of memory does not sleep for so long.
const (
	heldLooks = 4
	heldPause = 100 * time.Millisecond
)

// IsHeld reports whether the kernel holds a thread of a process, as in a driver that does
// not answer: it is in state D of proc_pid_stat(5), and in the same sleep, for the 0.3 s
// that this takes. No signal ends such a sleep, save in some one that kills. Where memory
// is short, threads are in state D whenever one looks, but in a sleep after the other,
// which each count as a voluntary switch. So does a driver that asks its device over and
// over: it is not told from them.
func IsHeld(pid int) bool {
	tasks := tasksOf(pid)
	held := sleepsOf(tasks)
	for range heldLooks - 1 {
		if len(held) == 0 {
			return false
		}
		time.Sleep(heldPause)
		now := sleepsOf(tasks)
		maps.DeleteFunc(held, func(tid, sleep string) bool { return now[tid] != sleep })
	}
	return len(held) > 0
}

// tasksOf is the directory of the threads of a process.
func tasksOf(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid), "task") }

// sleepsOf are the threads that are in state D at this moment, each with which of its
// sleeps that is.
func sleepsOf(tasks string) map[string]string {
	sleeps := map[string]string{}
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return sleeps
	}
	for _, thread := range threads {
		// One that has ended meanwhile is not held.
		status, _ := os.ReadFile(filepath.Join(tasks, thread.Name(), "status"))
		if sleep := statusField(status, "voluntary_ctxt_switches"); sleep != "" && statusField(status, "State") == "D (disk sleep)" {
			sleeps[thread.Name()] = sleep
		}
	}
	return sleeps
}

// statusField is a field of proc_pid_status(5). The first line is the name of the thread,
// in which the kernel escapes line ends.
func statusField(status []byte, name string) string {
	_, after, _ := bytes.Cut(status, []byte("\n"+name+":\t"))
	value, _, _ := bytes.Cut(after, []byte("\n"))
	return string(value)
}
