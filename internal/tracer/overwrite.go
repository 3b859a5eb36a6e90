package tracer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// writeWatch tells of probed files that are written to. The kernel remembers the
// probes of an inode by their offsets, and puts them into each program that maps
// it, whatever is there by then (install_breakpoint of kernel/events/uprobes.c): in
// a library that was overwritten in place they would stand in the middle of
// instructions, and its programs would crash.
type writeWatch struct {
	events *os.File
	mu     sync.Mutex
	// keys are the files of each watch: one inode may be reached by several paths.
	keys map[uint32][]fileKey
}

func newWriteWatch() (*writeWatch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watching for probed libraries that are written to: %w (the limit is fs.inotify.max_user_instances)", err)
	}
	return &writeWatch{events: os.NewFile(uintptr(fd), "inotify"), keys: map[uint32][]fileKey{}}, nil
}

// watch begins to watch an open file. It has to begin before the file is probed,
// and what was written before that is an error.
func (w *writeWatch) watch(open *os.File, id provider.FileID) (uint32, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	added, err := unix.InotifyAddWatch(w.fd(), "/proc/self/fd/"+strconv.Itoa(int(open.Fd())), unix.IN_MODIFY)
	if err != nil {
		return 0, fmt.Errorf("watching whether it is written to: %w (the limit is fs.inotify.max_user_watches)", err)
	}
	number := uint32(added)
	w.keys[number] = append(w.keys[number], keyOf(id))
	if err := isUnchanged(open, id); err != nil {
		w.drop(number, keyOf(id))
		return 0, err
	}
	return number, nil
}

func isUnchanged(open *os.File, id provider.FileID) error {
	info, err := open.Stat()
	if err != nil {
		return err
	}
	if info.Size() != id.Size || info.ModTime().UnixNano() != id.Modified {
		return provider.ErrChanged
	}
	return nil
}

// forget ends the watch of a file.
func (w *writeWatch) forget(number uint32, key fileKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(number, key)
}

// drop is called with mu held.
func (w *writeWatch) drop(number uint32, key fileKey) {
	left := slices.DeleteFunc(w.keys[number], func(k fileKey) bool { return k == key })
	if len(left) > 0 {
		w.keys[number] = left
		return
	}
	delete(w.keys, number)
	// It fails when the file is gone, and the watch with it.
	_, _ = unix.InotifyRmWatch(w.fd(), number)
}

// fd does not take the file out of non-blocking mode, as its Fd would.
func (w *writeWatch) fd() (fd int) {
	fd = -1
	if raw, err := w.events.SyscallConn(); err == nil {
		_ = raw.Control(func(f uintptr) { fd = int(f) })
	}
	return fd
}

func (w *writeWatch) close() error { return w.events.Close() }

// run calls written with each file that is written to, until close.
func (w *writeWatch) run(written func(fileKey)) error {
	// Room for many: watches are of files, and so the events have no names.
	buffer := make([]byte, 256*unix.SizeofInotifyEvent)
	for {
		n, err := w.events.Read(buffer)
		if errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading what libraries are written to: %w", err)
		}
		for _, key := range w.writtenIn(buffer[:n]) {
			written(key)
		}
	}
}

// writtenIn returns the files that events tell of; all when events were lost.
func (w *writeWatch) writtenIn(events []byte) []fileKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	var written []fileKey
	for len(events) >= unix.SizeofInotifyEvent {
		number := binary.NativeEndian.Uint32(events[unsafe.Offsetof(unix.InotifyEvent{}.Wd):])
		mask := binary.NativeEndian.Uint32(events[unsafe.Offsetof(unix.InotifyEvent{}.Mask):])
		length := binary.NativeEndian.Uint32(events[unsafe.Offsetof(unix.InotifyEvent{}.Len):])
		events = events[min(unix.SizeofInotifyEvent+int(length), len(events)):]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			for _, keys := range w.keys {
				written = append(written, keys...)
			}
		}
		if mask&unix.IN_MODIFY != 0 {
			written = append(written, w.keys[number]...)
		}
	}
	return written
}

// followWrites ends when the watch is closed, with the libraries.
func (t *Tracer) followWrites() {
	if err := t.libraries.writes.run(t.leaveWritten); err != nil {
		t.log.Error("libraries that are overwritten in place are not noticed any more", "error", err)
	}
}

// leaveWritten takes the probes off a library that is being overwritten in place.
// The next program that uses it brings probes for what it is then.
func (t *Tracer) leaveWritten(key fileKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.libraries.attachments[key]
	if t.closed || a == nil {
		return
	}
	t.warnings.warn(time.Now(), "a verbs library is written to in place, which breaks programs that use it; its probes are taken off. Replace libraries by renaming, as package managers do",
		"library", a.file.DisplayPath)
	if err := t.libraries.detach(a); err != nil {
		t.log.Warn("leaving a library that is written to", "error", err)
	}
}
