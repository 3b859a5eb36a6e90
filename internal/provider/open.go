package provider

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// stamp is what stat says of a file: as long as it stays the same, the file
// is taken to be the same and unchanged.
type stamp struct {
	device, inode uint64
	size          int64
	modified      unix.Timespec
	// changed is the time of the last change of the inode, which its owner
	// cannot set.
	changed unix.Timespec
}

// handle is a file that is opened for its identity only: opening it has had
// no side effect, whatever it is.
type handle struct {
	fd    int
	stamp stamp
	// regular is false for devices, pipes and the like.
	regular bool
}

func (h *handle) close() { _ = unix.Close(h.fd) }

func newHandle(fd int) (*handle, error) {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("stat: %w", err)
	}
	return &handle{
		fd:      fd,
		stamp:   stamp{device: uint64(s.Dev), inode: s.Ino, size: s.Size, modified: s.Mtim, changed: s.Ctim},
		regular: s.Mode&unix.S_IFMT == unix.S_IFREG,
	}, nil
}

// openInRoot opens a path as a process with that root directory would: a
// symbolic link in a container leads to a file of the container, not to one
// of the host.
func openInRoot(root, path string) (*handle, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, permission("open", root, "CAP_SYS_PTRACE", err)
	}
	defer func() { _ = unix.Close(dir) }()
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := unix.Openat2(dir, strings.TrimLeft(path, "/"), &how)
	if err != nil {
		return nil, permission("open", filepath.Join(root, path), "CAP_DAC_READ_SEARCH", err)
	}
	return newHandle(fd)
}

// openMapped opens the file behind a mapping itself, which works when it has
// no path any more.
func openMapped(process string, m *mapping) (*handle, error) {
	path := filepath.Join(process, "map_files", fmt.Sprintf("%x-%x", m.start, m.end))
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, permission("open", path, "CAP_CHECKPOINT_RESTORE (CAP_SYS_ADMIN before Linux 5.9)", err)
	}
	return newHandle(fd)
}

// read opens the file for reading.
func (h *handle) read(name string) (*os.File, error) {
	path := fmt.Sprintf("/proc/self/fd/%d", h.fd)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, permission("read", name, "CAP_DAC_READ_SEARCH", err)
	}
	return os.NewFile(uintptr(fd), shown(name)), nil
}

// identify tells by which device and inode /proc/PID/maps names the file. The
// kernel is asked by mapping the file here and looking at our own mappings:
// whatever rule it has for overlayfs, btrfs or the next file system, it is the
// same rule.
func identify(file *os.File) (inodeKey, error) {
	page, err := unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return inodeKey{}, fmt.Errorf("map %s to identify it: %w", file.Name(), err)
	}
	defer func() { _ = unix.Munmap(page) }()
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return inodeKey{}, fmt.Errorf("identify %s: %w", file.Name(), err)
	}
	defer func() { _ = maps.Close() }()
	address := addressOf(page)
	found, err := parseMaps(maps, func(_ string, m *mapping) bool { return address >= m.start && address < m.end })
	if err != nil {
		return inodeKey{}, fmt.Errorf("identify %s: %w", file.Name(), err)
	}
	if len(found) != 1 {
		return inodeKey{}, fmt.Errorf("identify %s: own mapping at %#x not found", file.Name(), address)
	}
	return found[0].key, nil
}

// shown is a path fit for logs and attributes.
func shown(path string) string { return text.Clean(path, unix.PathMax) }

// permission wraps errors that a capability would prevent.
func permission(op, path, capability string, err error) error {
	path = shown(path)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return &PermissionError{Op: op, Path: path, Capability: capability, Err: err}
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}
