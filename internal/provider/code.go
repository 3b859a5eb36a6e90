package provider

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Code is an executable part of a file in the memory of a process.
type Code struct {
	// Device and Inode are as in FileID.
	Device, Inode uint64
	// Start and End are its addresses, Offset is where in the file it starts.
	Start, End, Offset uint64
}

// FileOffset says where in the file an address is, false when it is not of
// this part.
func (c Code) FileOffset(address uint64) (uint64, bool) {
	return address - c.Start + c.Offset, address >= c.Start && address < c.End
}

// Address is the inverse of FileOffset.
func (c Code) Address(offset uint64) (uint64, bool) {
	return offset - c.Offset + c.Start, offset >= c.Offset && offset-c.Offset < c.End-c.Start
}

// Code lists the executable parts of files in a process. Errors are those of
// Process.
func (f *Finder) Code(pid int) ([]Code, error) {
	return patiently(f, obstacle{pid: pid}, func(*look) ([]Code, error) { return f.code(pid) })
}

func (f *Finder) code(pid int) ([]Code, error) {
	path := filepath.Join(f.processDir(pid), "maps")
	maps, err := os.Open(path)
	if err != nil {
		return nil, permission("read", path, "CAP_SYS_PTRACE", unwrapPath(err))
	}
	defer func() { _ = maps.Close() }()
	mappings, err := parseMaps(maps, nil)
	if errors.Is(err, unix.ESRCH) {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, permissionOf(path, err))
	}
	code := make([]Code, len(mappings))
	for i, m := range mappings {
		code[i] = Code{m.key.device, m.key.inode, m.start, m.end, m.offset}
	}
	return code, nil
}
