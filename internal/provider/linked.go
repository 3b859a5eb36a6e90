package provider

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A program, or a library, may have rdma-core linked in: then nothing in its
// dynamic section tells, and which of its functions post and poll is known from
// the ibv_context of a process alone.

// Handles are the addresses of functions of the data path in a process, as an
// ibv_context of it has them. 0 is none.
type Handles map[Function]uint64

// linkedFile is what is known of a file that a process has such functions in.
type linkedFile struct {
	library *Library
	// left are the functions that were told and left out.
	left map[toldFunction]bool
	// wrong counts what processes told of the file that is not so.
	wrong int
	// refused says that the file is not analysed, told that an error about it was
	// returned.
	refused, told bool
}

// toldFunction is what a process tells: the function is at this file offset.
type toldFunction struct {
	offset   uint64
	function Function
}

// mostWrong is how often processes may tell wrong things of a file before it is
// refused: each of them is looked into.
const mostWrong = 16

// Linked finds the file that has these functions of a process, if libibverbs and
// its provider are linked into it. From then on Process and All return it for
// every process that uses it. point is given the memory of the process and returns
// where an ibv_context there points to; it is run apart from the caller, and may be
// waiting for the process when nobody expects it any more. The file is nil where
// the functions are those of a library that is found without being pointed to, or
// of no file, and where an error about that file was returned before. Errors are
// those of Process, of InspectProvider and of point. With ErrContradiction the file
// is returned too: it is not to be probed any more.
func (f *Finder) Linked(pid int, point func(memory io.ReaderAt) (Handles, error)) (*File, error) {
	return patiently(f, obstacle{pid: pid}, func(l *look) (*File, error) { return f.findLinked(l, pid, point) })
}

func (f *Finder) findLinked(l *look, pid int, point func(io.ReaderAt) (Handles, error)) (*File, error) {
	handles, err := f.pointed(pid, point)
	if err != nil {
		return nil, err
	}
	mappings, err := f.executable(pid)
	if err != nil {
		return nil, err
	}
	// All of one driver are in one file. One that it lacks is a function of
	// libibverbs, which may be another one.
	polls, sends := mappingOf(mappings, handles[PollCQ]), mappingOf(mappings, handles[PostSend])
	if polls == nil || sends == nil || polls.key != sends.key {
		return nil, nil
	}
	c, err := f.examineAt(l, pid, polls)
	if err != nil || c.known.kind != Other || f.refusesLinked(c.known) {
		return nil, err
	}
	library, err := f.analyseLinked(l, &c, offsetsIn(mappings, polls.key, handles))
	switch {
	case errors.Is(err, ErrContradiction):
		return &c.file, fmt.Errorf("%s: %w", c.file.Path, err)
	case err != nil && Refused(err) && f.tellsAgain(c.known, err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", c.file.Path, err)
	}
	c.file.Library = library
	return &c.file, nil
}

// pointed reads the memory of a process.
func (f *Finder) pointed(pid int, point func(io.ReaderAt) (Handles, error)) (Handles, error) {
	path := filepath.Join(f.processDir(pid), "mem")
	memory, err := os.Open(path)
	if errors.Is(err, unix.ESRCH) {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist) // It has ended.
	}
	if err != nil {
		return nil, f.unreadable(permission("read", path, "CAP_SYS_PTRACE", unwrapPath(err)))
	}
	defer func() { _ = memory.Close() }()
	handles, err := point(memory)
	if errors.Is(err, io.EOF) {
		// The kernel says so once there is no memory any more.
		return nil, fmt.Errorf("%s: %w: %w", path, fs.ErrNotExist, err)
	}
	return handles, err
}

// mappingOf returns the mapping that an address is in, nil if it is in none.
func mappingOf(mappings []mapping, address uint64) *mapping {
	for i := range mappings {
		if m := &mappings[i]; address >= m.start && address < m.end {
			return m
		}
	}
	return nil
}

// offsetsIn returns by file offset the functions that are in the file.
func offsetsIn(mappings []mapping, file inodeKey, handles Handles) map[uint64]Function {
	offsets := map[uint64]Function{}
	for function, address := range handles {
		if m := mappingOf(mappings, address); m != nil && m.key == file && function <= PollCQ {
			offsets[m.offset+address-m.start] = function
		}
	}
	return offsets
}

// analyseLinked returns the analysis of the file with these functions, and with
// those that other processes have told of: one file may have several drivers.
func (f *Finder) analyseLinked(l *look, c *candidate, offsets map[uint64]Function) (*Library, error) {
	release, err := f.claimFile(l, c.file.ID)
	if err != nil {
		return nil, err
	}
	defer release()
	before, added := f.addedTo(c.known, offsets)
	if !added {
		return before, nil
	}
	file, err := f.Open(c.file)
	if err != nil {
		return nil, f.unreadable(err)
	}
	defer func() { _ = file.Close() }()
	library, left, err := f.inspectLinked(readingFile{file, l, obstacle{device: c.file.ID.Device}}, offsets, before)
	if err != nil {
		f.noteWrong(c.known, err)
		return nil, err
	}
	if name := filepath.Base(c.file.DisplayPath); printable(name, maxName) {
		library.Name = name
	}
	f.keepLinked(c.known, library, left)
	return library, nil
}

func (f *Finder) inspectLinked(file io.ReaderAt, offsets map[uint64]Function, before *Library) (library *Library, left []toldFunction, err error) {
	a, err := openLinked(file, f.machine)
	if err != nil {
		return nil, nil, err
	}
	f.count(func(c *Counters) { c.Analysed++ })
	return a.inspectLinked(offsets, before)
}

// addedTo returns the analysis so far, and whether one is to be made because it does
// not have all of these functions as these, and none that was asked for did.
func (f *Finder) addedTo(k *known, offsets map[uint64]Function) (before *Library, added bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	before = k.linked.library
	if before == nil {
		return nil, true
	}
	unknown := maps.Clone(offsets)
	maps.DeleteFunc(unknown, func(offset uint64, function Function) bool {
		return k.linked.left[toldFunction{offset, function}]
	})
	for _, t := range before.Targets {
		if unknown[t.Offset] == t.Function {
			delete(unknown, t.Offset)
		}
	}
	return before, len(unknown) > 0 && k.linked.wrong < mostWrong
}

func (f *Finder) linkedOf(k *known) *Library {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return k.linked.library
}

func (f *Finder) refusesLinked(k *known) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return k.linked.refused
}

func (f *Finder) keepLinked(k *known, library *Library, left []toldFunction) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	k.linked.library = library
	if k.linked.left == nil {
		k.linked.left = map[toldFunction]bool{}
	}
	for _, told := range left {
		remember(k.linked.left, maxLinkedFunctions, told, true)
	}
}

// noteWrong remembers that the file is not to be analysed. It may be the process
// that lies, and others have the same file: they are heard for some time. A file that
// could not be read says nothing of either.
func (f *Finder) noteWrong(k *known, err error) {
	if !Refused(err) && !errors.Is(err, ErrContradiction) {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if errors.Is(err, ErrContradiction) {
		k.linked = linkedFile{refused: true, told: true}
		return
	}
	k.linked.wrong++
	final := errors.Is(err, ErrNotVerbs) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrMachine) || errors.Is(err, ErrMalformed)
	if k.linked.library == nil && (final || k.linked.wrong >= mostWrong) {
		k.linked.refused = true
	}
}

// tellsAgain says whether an error about the file was returned before. The first
// one is counted.
func (f *Finder) tellsAgain(k *known, err error) bool {
	f.mutex.Lock()
	before := k.linked.told
	k.linked.told = true
	f.mutex.Unlock()
	if !before {
		f.countError(err)
	}
	return before
}
