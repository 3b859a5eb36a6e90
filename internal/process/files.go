package process

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// files is the directory of one process.
type files interface {
	// open opens a file below the directory.
	open(name string) (io.ReadCloser, error)
	// readlink reads a symbolic link in the directory.
	readlink(name string) (string, error)
}

// processDir is /proc/PID. It stays bound to the process that had the PID when
// it was opened: after its end reads fail with ESRCH, even when another
// process has the same PID by then.
type processDir struct {
	root *os.Root
}

func openProcess(procRoot string, pid int) (processDir, error) {
	if pid <= 0 {
		return processDir{}, fmt.Errorf("%d is not a process id", pid)
	}
	root, err := os.OpenRoot(filepath.Join(procRoot, strconv.Itoa(pid)))
	if vanished(err) {
		return processDir{}, fmt.Errorf("%w: %w", ErrGone, err)
	}
	return processDir{root: root}, err
}

func (d processDir) Close() error { return d.root.Close() }

func (d processDir) open(name string) (io.ReadCloser, error) {
	return d.root.Open(name)
}

func (d processDir) readlink(name string) (string, error) {
	return d.root.Readlink(name)
}

// readSome returns at most limit bytes of a file.
func readSome(dir files, name string, limit int64) ([]byte, error) {
	file, err := dir.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit))
}
