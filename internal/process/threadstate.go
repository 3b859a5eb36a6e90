package process

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// waitLimit bounds /proc/PID/task/TID/wchan, the name of one function.
const waitLimit = 128

// ThreadState is what a thread does at one moment.
type ThreadState struct {
	// Name is its comm.
	Name string
	// State is that of proc_pid_stat(5), such as 'R', 'S', 'D', 'T' or 't'.
	State byte
	// CPU is the one that it runs or ran last on, -1 when that is not known.
	CPU int
	// Wait is the function of the kernel that it sleeps in, "" where it does not sleep
	// or that may not be known (proc_pid_wchan(5)).
	Wait string
	// Alone is true when its process has no other thread.
	Alone bool
}

// ThreadState returns what a thread does now. The error wraps ErrGone when the thread
// or process has exited, or is not a thread of that process.
func (r *Reader) ThreadState(pid, tid int) (ThreadState, error) {
	state, err := r.threadState(pid, tid)
	if vanished(err) {
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err != nil {
		return ThreadState{}, fmt.Errorf("read the state of thread %d of process %d: %w", tid, pid, err)
	}
	return state, nil
}

func (r *Reader) threadState(pid, tid int) (ThreadState, error) {
	dir, err := openProcess(r.root, pid)
	if err != nil {
		return ThreadState{}, err
	}
	defer dir.Close()
	task := filepath.Join("task", strconv.Itoa(tid))
	text, err := readSome(dir, filepath.Join(task, "stat"), statLimit)
	if err != nil {
		return ThreadState{}, err
	}
	parsed, err := parseStat(text)
	if err != nil {
		return ThreadState{}, err
	}
	state := ThreadState{Name: clean(parsed.comm), State: parsed.state, CPU: parsed.processor, Alone: parsed.threads == 1}
	// Who may not trace the thread reads 0, as for one that runs.
	if wait, err := readSome(dir, filepath.Join(task, "wchan"), waitLimit); err == nil && string(wait) != "0" {
		state.Wait = clean(string(wait))
	}
	return state, nil
}
