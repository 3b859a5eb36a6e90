package tracer

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const trialName = "rdma-probe-trial"

// trialFile is the program in a file that has no name any more. A file in memory
// needs no directory, but hardened machines refuse executable ones
// (vm.memfd_noexec=2): then it is one in the directory for temporary files.
func trialFile(calls uint32) (*os.File, error) {
	program, err := trialProgram(calls)
	if err != nil {
		return nil, err
	}
	file, inMemory := memoryFile(program)
	if inMemory == nil {
		return file, nil
	}
	file, onDisk := temporaryFile(program)
	if onDisk != nil {
		return nil, errors.Join(inMemory, onDisk)
	}
	return file, nil
}

// memoryFile asks for a file that may be executed: where vm.memfd_noexec is 1, one
// may not be unless that is asked for. Kernels before 6.3 do not know the flag.
func memoryFile(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(trialName, unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(trialName, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("creating an executable file in memory: %w", err)
	}
	writer := os.NewFile(uintptr(fd), trialName)
	defer writer.Close()
	if _, err := writer.Write(content); err != nil {
		return nil, fmt.Errorf("writing to a file in memory: %w", err)
	}
	// A file that is open for writing is not executed.
	return os.Open("/proc/self/fd/" + strconv.Itoa(fd))
}

func temporaryFile(content []byte) (*os.File, error) {
	writer, err := os.CreateTemp("", trialName)
	if err != nil {
		return nil, fmt.Errorf("%w: set TMPDIR to a directory for a program of a few bytes", err)
	}
	defer os.Remove(writer.Name())
	defer writer.Close()
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(writer.Fd()), &system); err != nil {
		return nil, fmt.Errorf("statfs of %s: %w", writer.Name(), err)
	}
	if system.Flags&unix.ST_NOEXEC != 0 {
		return nil, fmt.Errorf("%s is mounted noexec: set TMPDIR to a directory that is not", os.TempDir())
	}
	if _, err := writer.Write(content); err != nil {
		return nil, err
	}
	if err := writer.Chmod(0o700); err != nil {
		return nil, err
	}
	return os.Open(writer.Name())
}
