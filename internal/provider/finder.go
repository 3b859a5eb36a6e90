package provider

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// FileID names a file and its state: equal for two paths to one file, changed
// when the file is, and not when it is only linked, unlinked or given another
// mode: probes stay on a library that an upgrade removes below a running job. With some kernels, a file below two overlay mounts has two
// names, although probes on one are probes on the other.
type FileID struct {
	// Device and Inode are those of /proc/PID/maps, Device in the encoding of
	// unix.Mkdev. On btrfs and, with some kernels, overlayfs, stat gives
	// another device.
	Device, Inode uint64
	// Size is in bytes, Modified in nanoseconds since 1970.
	Size, Modified int64
}

// File is a verbs library and a way to it.
type File struct {
	Library *Library
	// Path leads to the file from here and now, such as
	// /proc/123/root/usr/lib/libibverbs.so.1. See Finder.Open.
	Path string
	// DisplayPath is the path as the process sees it, cleaned to be shown:
	// processes choose the names of their files.
	DisplayPath string
	ID          FileID
	// PID is the process through which the file was found, 0 for Installed.
	PID int

	root, name string
	mapped     *mapping
	// stamp is that of the content which was analysed.
	stamp stamp
}

// identify says which file it is.
func (file *File) identify(key inodeKey, s stamp) {
	file.ID = fileID(key, s)
	file.stamp = s
}

// Counters are totals since the Finder was made. Files count once as long as
// they are remembered.
type Counters struct {
	// Processes and Examined count processes looked at and files opened.
	Processes, Examined uint64
	// Analysed counts providers that were analysed, Restored those whose
	// analysis was in the cache on disk.
	Analysed, Restored uint64
	// Refused32Bit counts 32-bit verbs libraries, RefusedMachine those for
	// another processor.
	Refused32Bit, RefusedMachine uint64
	// Malformed, TooLarge and SymbolMismatch count files refused for that.
	Malformed, TooLarge, SymbolMismatch uint64
	// Unresolved counts verbs libraries of which functions were not found.
	Unresolved uint64
	// Unreadable counts failures to read a process or a file that exists.
	Unreadable uint64
}

// Finder finds verbs libraries in processes. It remembers what it has seen,
// so that a further process with known libraries costs little. It may be used
// by several goroutines.
type Finder struct {
	proc     string
	machine  elf.Machine
	cache    *Cache
	patience time.Duration
	spawn    func(func())
	takes    func(path string) bool

	// mutex guards what follows and the results of the files. It is never held
	// while something is read.
	mutex    sync.Mutex
	files    map[inodeKey]*known
	analyses map[analysisKey]*Library
	counters Counters
	// claimed is what somebody works on: files by their inodeKey, and analyses by
	// their analysisKey. hanging counts the looks that make no progress by what
	// holds them up.
	claimed map[any]chan struct{}
	hanging map[obstacle]int
}

// NewFinder returns a Finder over a proc file system, "/proc" if procRoot is
// empty.
func NewFinder(procRoot string) *Finder {
	if procRoot == "" {
		procRoot = "/proc"
	}
	machine := elf.EM_X86_64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_AARCH64
	}
	return &Finder{
		proc: procRoot, machine: machine, patience: patience, spawn: func(look func()) { go look() },
		takes: func(string) bool { return true },
		files: map[inodeKey]*known{}, analyses: map[analysisKey]*Library{},
		claimed: map[any]chan struct{}{}, hanging: map[obstacle]int{},
	}
}

// WithSpawn has the function run the looks at processes, each of them apart from
// its caller because it may never come to an end, and returns the Finder. It
// comes before any other use.
func (f *Finder) WithSpawn(spawn func(look func())) *Finder {
	f.spawn = spawn
	return f
}

// WithFiles leaves out the files whose paths, as their processes see them, the
// function does not take, and returns the Finder. It comes before any other use.
func (f *Finder) WithFiles(takes func(path string) bool) *Finder {
	f.takes = takes
	return f
}

// WithCache keeps analyses in a cache on disk as well, and returns the Finder.
// It comes before any other use. Closing the cache is left to the caller.
func (f *Finder) WithCache(cache *Cache) *Finder {
	f.cache = cache
	return f
}

// Counters returns the totals so far.
func (f *Finder) Counters() Counters {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.counters
}

// Process returns the verbs libraries that a process has mapped executable.
// What was found is returned along with an error about what could not be
// read. The error wraps fs.ErrNotExist when the process is gone, and is or
// wraps a PermissionError when a capability is missing. It wraps ErrHangs when
// what a file is on, or the process, does not answer within some seconds; that is
// then passed over, so that one hung file system does not hide the others.
func (f *Finder) Process(pid int) ([]File, error) {
	return f.lookAt(pid, newFileSet())
}

func (f *Finder) lookAt(pid int, others *fileSet) ([]File, error) {
	return patiently(f, obstacle{pid: pid}, func(l *look) ([]File, error) { return f.process(l, pid, others) })
}

// All looks at every process. Files are returned once, however many processes
// use them; of many errors the first ones are. When the context ends, that is the
// last error, and what was found until then is returned.
func (f *Finder) All(ctx context.Context) ([]File, []error) {
	const maxErrors = 32
	entries, err := os.ReadDir(f.proc)
	if err != nil {
		return nil, []error{fmt.Errorf("list processes: %w", err)}
	}
	var found []File
	var errs []error
	seen := map[FileID]bool{}
	others := newFileSet()
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid <= 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return found, append(errs, err)
		}
		files, err := f.lookAt(pid, others)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && len(errs) < maxErrors {
			errs = append(errs, err)
		}
		for _, file := range files {
			if !seen[file.ID] {
				seen[file.ID] = true
				found = append(found, file)
			}
		}
	}
	return found, errs
}

// Open opens the file for reading and makes sure that it is the one that was
// analysed. A path may be exchanged at any time by whoever owns it; attach
// probes to /proc/self/fd/N of what Open returns, not to File.Path. The error
// wraps ErrChanged when the file is another one by now, or its inode was changed
// in any way: an owner can rewrite a file and set its old time of modification.
func (f *Finder) Open(file File) (*os.File, error) {
	h, err := f.handleOf(&file)
	if err != nil {
		return nil, err
	}
	defer h.close()
	opened, err := h.read(file.Path)
	if err != nil {
		return nil, err
	}
	key, err := identify(opened)
	if err == nil && (fileID(key, h.stamp) != file.ID || h.stamp != file.stamp) {
		err = fmt.Errorf("%s: %w", shown(file.Path), ErrChanged)
	}
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	return opened, nil
}

func (f *Finder) handleOf(file *File) (*handle, error) {
	if file.mapped != nil {
		return openMapped(f.processDir(file.PID), file.mapped)
	}
	return openInRoot(file.root, file.name)
}

func fileID(key inodeKey, s stamp) FileID {
	return FileID{Device: key.device, Inode: key.inode, Size: s.size, Modified: unix.TimespecToNsec(s.modified)}
}

func (f *Finder) processDir(pid int) string {
	return filepath.Join(f.proc, strconv.Itoa(pid))
}

// process examines one process. Files in others are known to be no verbs
// libraries: that need not be asked again within one pass, during which the
// processes that map them keep their inodes from being reused.
func (f *Finder) process(l *look, pid int, others *fileSet) ([]File, error) {
	f.count(func(c *Counters) { c.Processes++ })
	mappings, err := f.mappings(pid)
	if err != nil {
		return nil, err
	}
	var errs errorList
	var found []candidate
	for i := range mappings {
		m := &mappings[i]
		if !f.takes(m.path) || others.has(m.key) {
			continue
		}
		c, err := f.examineAt(l, pid, m)
		if err != nil {
			errs.add(err)
			continue
		}
		if c.linked = f.linkedOf(c.known); c.known.kind == Other && c.linked == nil {
			others.add(m.key)
			continue
		}
		found = append(found, c)
	}
	files := f.resolve(l, found, &errs)
	return files, errs.join(fmt.Sprintf("process %d", pid))
}

// examineAt passes over a file whose file system hangs.
func (f *Finder) examineAt(l *look, pid int, m *mapping) (candidate, error) {
	if err := f.reach(l, m.key.device); err != nil {
		return candidate{}, err
	}
	return f.examine(l, pid, m)
}

// reach is where a look gets to a file system.
func (f *Finder) reach(l *look, device uint64) error {
	at := obstacle{device: device}
	if err := f.passable(at); err != nil {
		return err
	}
	l.enter(at)
	return nil
}

func (f *Finder) count(add func(*Counters)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	add(&f.counters)
}

// mappings returns one executable mapping of each file.
func (f *Finder) mappings(pid int) ([]mapping, error) {
	all, err := f.executable(pid)
	return distinct(all), err
}

// executable returns all executable mappings of files.
func (f *Finder) executable(pid int) ([]mapping, error) {
	path := filepath.Join(f.processDir(pid), "maps")
	maps, err := os.Open(path)
	if err != nil {
		return nil, f.unreadable(permission("read", path, "CAP_SYS_PTRACE", unwrapPath(err)))
	}
	defer func() { _ = maps.Close() }()
	mappings, err := parseMaps(maps, nil)
	if errors.Is(err, unix.ESRCH) {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, f.unreadable(fmt.Errorf("%s: %w", path, permissionOf(path, err)))
	}
	return mappings, nil
}

// unreadable counts an error unless it says that something is gone.
func (f *Finder) unreadable(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		f.count(func(c *Counters) { c.Unreadable++ })
	}
	return err
}

// permissionOf names the capability for an error of reading /proc.
func permissionOf(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &PermissionError{Op: "read", Path: path, Capability: "CAP_SYS_PTRACE", Err: err}
	}
	return err
}

func unwrapPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// candidate is a file found in a process or a directory.
type candidate struct {
	file  File
	known *known
	// linked is the analysis of a file of kind Other that has rdma-core linked in.
	// It is asked for once: another look may find a contradiction at any time.
	linked *Library
}

// examine opens the file behind a mapping and says what it is.
func (f *Finder) examine(l *look, pid int, m *mapping) (candidate, error) {
	file := File{PID: pid, DisplayPath: shown(m.path), root: filepath.Join(f.processDir(pid), "root"), name: m.path}
	file.Path = filepath.Join(file.root, m.path)
	var denied error
	if !m.deleted {
		h, err := openInRoot(file.root, m.path)
		if err == nil {
			defer h.close()
			k, err := f.lookUp(l, h, m.key, file.Path)
			if !errors.Is(err, ErrChanged) {
				file.identify(m.key, h.stamp)
				return candidate{file: file, known: k}, f.failed(err)
			}
		}
		if errors.Is(err, fs.ErrPermission) {
			denied = err
		}
	}
	// The path is gone or leads elsewhere: the file was replaced or is below
	// another mount.
	file.mapped = m
	file.Path = filepath.Join(f.processDir(pid), "map_files", fmt.Sprintf("%x-%x", m.start, m.end))
	h, err := openMapped(f.processDir(pid), m)
	if err != nil && denied != nil {
		err = denied
	}
	if err != nil {
		return candidate{}, f.unreadable(err)
	}
	defer h.close()
	k, err := f.lookUp(l, h, m.key, file.Path)
	file.identify(m.key, h.stamp)
	return candidate{file: file, known: k}, f.failed(err)
}

// failed counts errors of reading; those about the content are counted when
// the file is first seen.
func (f *Finder) failed(err error) error {
	if err == nil {
		return nil
	}
	return f.unreadable(err)
}

// lookUp returns what is known of the file, which must be the one that
// mappings name by the key.
func (f *Finder) lookUp(l *look, h *handle, key inodeKey, name string) (*known, error) {
	if k := f.remembered(h, key); k != nil {
		return k, nil
	}
	if !h.regular {
		return &known{stamp: h.stamp, kind: Other}, nil
	}
	release, err := f.claim(l, key, obstacle{device: key.device})
	if err != nil {
		return nil, err
	}
	defer release()
	if k := f.remembered(h, key); k != nil {
		return k, nil // By who had claimed it.
	}
	file, err := h.read(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if h.stamp.device != key.device || h.stamp.inode != key.inode {
		actual, err := identify(file)
		if err != nil {
			return nil, err
		}
		if actual != key {
			return nil, fmt.Errorf("%s: %w", shown(name), ErrChanged)
		}
	}
	k, err := f.classify(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shown(name), err)
	}
	k.stamp = h.stamp
	f.mutex.Lock()
	defer f.mutex.Unlock()
	remember(f.files, maxFiles, key, k)
	return k, nil
}

// remembered is nil for a file that is new or has changed.
func (f *Finder) remembered(h *handle, key inodeKey) *known {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if k, ok := f.files[key]; ok && k.stamp == h.stamp {
		return k
	}
	return nil
}

// classify reads a file that is not known yet. Only errors of reading are
// returned: a file that is refused is remembered as such.
func (f *Finder) classify(file io.ReaderAt) (*known, error) {
	f.count(func(c *Counters) { c.Examined++ })
	k := &known{kind: Other}
	img, err := openImage(file)
	if err == nil && img.machine != f.machine {
		err = fmt.Errorf("%w: %v", ErrMachine, img.machine)
	}
	var a *analysis
	if err == nil {
		k.kind, a, err = img.classify()
	}
	if err == nil && k.kind == Verbs {
		k.library, k.slots, err = a.inspectVerbs()
	}
	if err == nil && k.kind == Provider {
		k.abi, k.results = privateABI(a.symbols), map[Slots]result{}
	}
	if err != nil && !Refused(err) {
		return nil, err
	}
	k.err = err
	f.countRefusal(file, k)
	return k, nil
}

// countRefusal counts why a verbs library is refused. Most files that are not
// ELF files for this processor have no part in verbs.
func (f *Finder) countRefusal(file io.ReaderAt, k *known) {
	switch err := k.err; {
	case err == nil, errors.Is(err, ErrNotELF):
		k.err = nil
	case errors.Is(err, Err32Bit), errors.Is(err, ErrMachine):
		if !mentionsAnywhere(file, setOpsName) {
			k.err = nil
			return
		}
		k.kind = Provider
		f.count(func(c *Counters) {
			if errors.Is(err, Err32Bit) {
				c.Refused32Bit++
			} else {
				c.RefusedMachine++
			}
		})
	default:
		f.countError(err)
	}
}

func (f *Finder) countError(err error) {
	f.count(func(c *Counters) {
		switch {
		case errors.Is(err, ErrTooLarge):
			c.TooLarge++
		case errors.Is(err, ErrSymbolMismatch):
			c.SymbolMismatch++
		case errors.Is(err, ErrUnresolved), errors.Is(err, ErrRefusedInstruction):
			c.Unresolved++
		default:
			c.Malformed++
		}
	})
}
