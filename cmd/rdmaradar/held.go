package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// heldLooks is how often a thread must be found held, heldPause the time between: one
// that only waits for a page of memory is not for so long.
const (
	heldLooks = 4
	heldPause = 20 * time.Millisecond
)

// isHeld reports whether the kernel holds a thread of a process, in a sleep that nothing
// but what is waited for ends: state D of proc_pid_stat(5), as in a driver that does not
// answer. It takes less than a tenth of a second.
func isHeld(pid int) bool {
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	held := heldOf(tasks)
	for range heldLooks - 1 {
		time.Sleep(heldPause)
		still := heldOf(tasks)
		for tid := range held {
			if !still[tid] {
				delete(held, tid)
			}
		}
	}
	return len(held) > 0
}

// heldOf are the threads that are held at this moment.
func heldOf(tasks string) map[string]bool {
	held := map[string]bool{}
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return held
	}
	for _, thread := range threads {
		// One that has ended meanwhile is not held. The name before the state may have
		// parentheses.
		text, _ := os.ReadFile(filepath.Join(tasks, thread.Name(), "stat"))
		if bytes.HasPrefix(text[bytes.LastIndexByte(text, ')')+1:], []byte(" D ")) {
			held[thread.Name()] = true
		}
	}
	return held
}
