package process

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
)

// Executable returns Facts.Executable of a process without reading anything for
// which the kernel makes a reader wait. The error wraps ErrGone when the process
// has exited.
func (r *Reader) Executable(pid int) (string, error) {
	dir, err := openProcess(r.root, pid)
	if err != nil {
		return "", fmt.Errorf("read the executable of process %d: %w", pid, err)
	}
	defer dir.Close()
	program, exeErr := readExecutable(dir)
	if name := clean(program); name != "" {
		return name, nil
	}
	comm, err := readSome(dir, "comm", commLimit)
	if vanished(err) {
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err != nil {
		return "", fmt.Errorf("read the executable of process %d: %w", pid, cmp.Or(exeErr, err))
	}
	return clean(string(comm)), nil
}

// readExecutable returns the file name of the program, without the directory:
// paths tell user names. It is "" without an error where there is no program,
// as with kernel threads and processes that are exiting.
func readExecutable(dir files) (string, error) {
	target, err := dir.readlink("exe")
	if vanished(err) {
		return "", nil
	}
	if err != nil {
		return "", part("executable", err)
	}
	return executableName(target), nil
}

// executableName is the last part of the target of /proc/PID/exe. The kernel
// appends " (deleted)" once the file is unlinked, as after an upgrade.
func executableName(target string) string {
	name := filepath.Base(strings.TrimSuffix(target, " (deleted)"))
	if name == "." || name == string(filepath.Separator) {
		return ""
	}
	return name
}
