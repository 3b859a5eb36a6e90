package provider

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds on the cache on disk. No packaged provider takes more than 6 KiB.
const (
	maxCachedBytes = 64 << 10
	maxCachedFiles = 512
	// abandonedAfter is the age from which a file that was not written to its
	// end belongs to nobody any more.
	abandonedAfter = time.Hour
)

// Cache is a directory that keeps what is known of libraries from one start to
// the next. Whoever can write to it decides where probes stand in other users'
// programs. So the directory and its files must be ours or root's, and nobody
// else may be able to write to them; and what is read is checked against the
// library. A nil Cache keeps nothing. It may be used by several goroutines.
type Cache struct {
	path   string
	dir    *os.File
	report func(error)

	mutex sync.Mutex
	// failing says that the last file could not be written.
	failing bool
}

// OpenCache opens a directory, and makes it if there is none. The error says why
// it cannot be used. Later troubles are told to report: a file that is not what
// it should be each time, failures to write until one succeeds once.
func OpenCache(path string, report func(error)) (*Cache, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the cache directory: %w", err)
	}
	// The path may lead over links: it is the operator's own.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open the cache directory", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	if _, err := trusted(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("cache directory %s: %w", path, err), dir.Close())
	}
	return &Cache{path: path, dir: dir, report: report}, nil
}

// Close releases the directory. The Cache must not be used any more.
func (c *Cache) Close() error {
	if c == nil {
		return nil
	}
	return c.dir.Close()
}

// trusted reports an error unless we and root alone can change the file.
func trusted(file *os.File) (*unix.Stat_t, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return nil, fmt.Errorf("stat: %w", err)
	}
	if s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("it belongs to user %d, who could place probes through it: chown it to user %d", s.Uid, os.Geteuid())
	}
	if s.Mode&0o022 != 0 {
		return nil, fmt.Errorf("others may write to it and could place probes through it (mode %#o): chmod go-w", s.Mode&0o7777)
	}
	return &s, nil
}

// read returns the content of a file, nil if there is none that can be trusted.
func (c *Cache) read(name string) []byte {
	content, err := c.readFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.ignored(name, err)
	}
	return content
}

// ignored reports that a file is not used.
func (c *Cache) ignored(name string, err error) {
	c.report(fmt.Errorf("ignoring %s: %w", filepath.Join(c.path, name), err))
}

func (c *Cache) readFile(name string) ([]byte, error) {
	fd, err := unix.Openat(int(c.dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	defer func() { _ = file.Close() }()
	s, err := trusted(file)
	if err != nil {
		return nil, err
	}
	if s.Mode&unix.S_IFMT != unix.S_IFREG || s.Nlink != 1 {
		return nil, fmt.Errorf("not a regular file of one name (mode %#o, %d links)", s.Mode, s.Nlink)
	}
	content, err := io.ReadAll(io.LimitReader(file, maxCachedBytes+1))
	if err == nil && len(content) > maxCachedBytes {
		err = fmt.Errorf("larger than %d KiB", maxCachedBytes>>10)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// write puts a file in the place of what has the name. Whoever reads it gets
// the old content or the new one, nothing between.
func (c *Cache) write(name string, content []byte) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	err := c.replace(name, content)
	if err == nil {
		err = c.prune()
	}
	if err != nil && !c.failing {
		c.report(fmt.Errorf("write %s: %w", filepath.Join(c.path, name), err))
	}
	c.failing = err != nil
}

func (c *Cache) replace(name string, content []byte) (err error) {
	if len(content) > maxCachedBytes {
		return fmt.Errorf("%d bytes are more than the %d KiB of a file", len(content), maxCachedBytes>>10)
	}
	dir := int(c.dir.Fd())
	temporary := fmt.Sprintf("%s.%d.new", name, os.Getpid())
	// One that a process with our id left behind is in the way.
	_ = unix.Unlinkat(dir, temporary, 0)
	fd, err := unix.Openat(dir, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), temporary)
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = unix.Renameat(dir, temporary, dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temporary, 0)
	}
	return err
}

// ours are the names of the files of a Cache, finished or not.
var ours = regexp.MustCompile(`^[0-9a-f]{64}\.(analysis|verdicts)\.json(\.[0-9]+\.new)?$`)

// prune removes the files that were written the longest time ago when there
// are too many, and those that were never finished.
func (c *Cache) prune() error {
	fd, err := unix.Openat(int(c.dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), c.path)
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(0)
	if err != nil {
		return err
	}
	type aged struct {
		name    string
		written int64
	}
	var finished []aged
	for _, name := range names {
		var s unix.Stat_t
		if !ours.MatchString(name) || unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		written := unix.TimespecToNsec(s.Mtim)
		switch {
		case filepath.Ext(name) == ".json":
			finished = append(finished, aged{name, written})
		case time.Since(time.Unix(0, written)) > abandonedAfter:
			_ = unix.Unlinkat(fd, name, 0)
		}
	}
	slices.SortFunc(finished, func(a, b aged) int {
		return cmp.Or(cmp.Compare(b.written, a.written), cmp.Compare(a.name, b.name))
	})
	for _, file := range finished[min(maxCachedFiles, len(finished)):] {
		if err := unix.Unlinkat(fd, file.name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}
