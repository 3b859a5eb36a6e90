package provider

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds on /proc/PID/maps. vm.max_map_count allows 65,530 mappings unless an
// administrator raises it.
const (
	maxMapsBytes = 64 << 20
	maxMapsLine  = 20 << 10
)

// inodeKey is a file as the kernel names it in /proc/PID/maps: the device of
// the file system that holds it, and its inode there. On btrfs and, with some
// kernels, overlayfs, stat names another device.
type inodeKey struct {
	device, inode uint64
}

// mapping is one line of /proc/PID/maps.
type mapping struct {
	start, end uint64
	// offset of start in the file.
	offset uint64
	key    inodeKey
	// path as the process sees it; deleted when it no longer has one.
	path    string
	deleted bool
}

// parseMaps returns the mappings for which keep answers true, executable ones
// of files if keep is nil.
func parseMaps(r io.Reader, keep func(permissions string, m *mapping) bool) ([]mapping, error) {
	if keep == nil {
		keep = executableFile
	}
	limited := &io.LimitedReader{R: r, N: maxMapsBytes}
	reader := bufio.NewReaderSize(limited, maxMapsLine)
	var found []mapping
	for {
		line, err := reader.ReadSlice('\n')
		if limited.N <= 0 {
			return found, fmt.Errorf("%w: more than %d MiB of mappings", ErrTooLarge, maxMapsBytes>>20)
		}
		if len(line) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			permissions, m, parseErr := parseMapping(bytes.TrimSuffix(line, []byte{'\n'}))
			if parseErr != nil {
				return found, parseErr
			}
			if keep(permissions, &m) {
				found = append(found, m)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return found, fmt.Errorf("read mappings: %w", err)
		}
	}
}

// executableFile keeps what can be a library in use.
func executableFile(permissions string, m *mapping) bool {
	return len(permissions) == 4 && permissions[2] == 'x' && m.key.inode != 0 && strings.HasPrefix(m.path, "/")
}

// parseMapping reads "start-end perms offset major:minor inode   path".
func parseMapping(line []byte) (permissions string, m mapping, err error) {
	bad := func(what string) (string, mapping, error) {
		return "", mapping{}, fmt.Errorf("mapping %.80q: bad %s", line, what)
	}
	fields := strings.SplitN(string(line), " ", 6)
	if len(fields) < 5 {
		return bad("number of fields")
	}
	start, end, ok := strings.Cut(fields[0], "-")
	if m.start, err = strconv.ParseUint(start, 16, 64); err != nil || !ok {
		return bad("start")
	}
	if m.end, err = strconv.ParseUint(end, 16, 64); err != nil || m.end < m.start {
		return bad("end")
	}
	if m.offset, err = strconv.ParseUint(fields[2], 16, 64); err != nil {
		return bad("offset")
	}
	major, minor, _ := strings.Cut(fields[3], ":")
	first, err1 := strconv.ParseUint(major, 16, 32)
	second, err2 := strconv.ParseUint(minor, 16, 32)
	if err1 != nil || err2 != nil {
		return bad("device")
	}
	m.key.device = unix.Mkdev(uint32(first), uint32(second))
	if m.key.inode, err = strconv.ParseUint(fields[4], 10, 64); err != nil {
		return bad("inode")
	}
	if len(fields) == 6 {
		m.path = strings.TrimLeft(fields[5], " ")
	}
	m.path, m.deleted = strings.CutSuffix(m.path, " (deleted)")
	// The kernel escapes only the newline.
	m.path = strings.ReplaceAll(m.path, `\012`, "\n")
	return fields[1], m, nil
}

// distinct drops further mappings of the same file.
func distinct(mappings []mapping) []mapping {
	seen := map[inodeKey]bool{}
	var once []mapping
	for _, m := range mappings {
		if !seen[m.key] {
			seen[m.key] = true
			once = append(once, m)
		}
	}
	return once
}
