package process

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// commLimit bounds a comm: 15 bytes for user threads, up to 63 for kernel ones.
const commLimit = 64

// ThreadName returns the comm of a thread. The error wraps ErrGone when the
// thread or process has exited, or is not a thread of that process.
func (r *Reader) ThreadName(pid, tid int) (string, error) {
	dir, err := openProcess(r.root, pid)
	if err != nil {
		return "", fmt.Errorf("read the name of thread %d of process %d: %w", tid, pid, err)
	}
	defer dir.Close()
	comm, err := readSome(dir, filepath.Join("task", strconv.Itoa(tid), "comm"), commLimit)
	if vanished(err) {
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err != nil {
		return "", fmt.Errorf("read the name of thread %d of process %d: %w", tid, pid, err)
	}
	return clean(string(comm)), nil
}
