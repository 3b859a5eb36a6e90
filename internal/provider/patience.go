package provider

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patience is how long one file is waited for. Opening one that is on a network
	// file system without its server takes for ever.
	patience = 5 * time.Second
	// mostHanging bounds what hangs, and with them the threads that
	// the kernel holds.
	mostHanging = 64
)

// obstacle is what may hold up who looks at a process: the file system of a file
// that it has mapped or, with device 0, the process itself, while it keeps its
// memory locked. The process is 0 for a file system, which is the same to all, and
// for the library directories.
type obstacle struct {
	pid    int
	device uint64
}

// nowhere is where a look is while it is held up by what comes to an end by
// itself, such as an analysis, however long that takes.
var nowhere = obstacle{pid: -1}

func (o obstacle) String() string {
	switch {
	case o.device != 0:
		return fmt.Sprintf("a file system (device %d:%d)", unix.Major(o.device), unix.Minor(o.device))
	case o.pid != 0:
		return fmt.Sprintf("the memory of process %d, as of /proc/%d/maps and mem", o.pid, o.pid)
	default:
		return "the library directories"
	}
}

// look is one look at a process. It tells what it is at, so that who waits for it
// knows what holds it up.
type look struct {
	at   atomic.Pointer[obstacle]
	done chan struct{}
}

func (l *look) enter(o obstacle) { l.at.Store(&o) }

// readingFile is a file whose every reading may be held up by its file system. What
// is done in between is not.
type readingFile struct {
	io.ReaderAt
	look   *look
	behind obstacle
}

// ReadAt implements io.ReaderAt.
func (r readingFile) ReadAt(p []byte, at int64) (int, error) {
	r.look.enter(r.behind)
	defer r.look.enter(nowhere)
	return r.ReaderAt.ReadAt(p, at)
}

// patiently looks, and waits as long as there is progress. What holds it up is
// passed over from then on until it goes on, also by the second attempt, which
// finds what else there is.
func patiently[T any](f *Finder, first obstacle, work func(*look) (T, error)) (found T, err error) {
	type result struct {
		found T
		err   error
	}
	for range 2 {
		if err := f.passable(first); err != nil {
			return found, err
		}
		var r result
		l := f.start(first, func(l *look) { r.found, r.err = work(l) })
		held := f.await(l)
		if held == nowhere {
			return r.found, r.err
		}
		err = fmt.Errorf("%s: %w", held, ErrHangs)
	}
	return found, err
}

func (f *Finder) start(first obstacle, work func(*look)) *look {
	l := &look{done: make(chan struct{})}
	l.enter(first)
	f.spawn(func() {
		defer close(l.done)
		work(l)
	})
	return l
}

// await waits for the end of the look. It returns what holds it up, which is
// impassable until it goes on, nowhere when it has ended.
func (f *Finder) await(l *look) (held obstacle) {
	for {
		before := l.at.Load()
		select {
		case <-l.done:
			return nowhere
		case <-time.After(f.patience):
		}
		if at := l.at.Load(); at == before && *at != nowhere {
			f.avoid(*at, l.done)
			return *at
		}
	}
}

// avoid makes an obstacle impassable until done is closed.
func (f *Finder) avoid(o obstacle, done <-chan struct{}) {
	f.mutex.Lock()
	f.hanging[o]++
	f.mutex.Unlock()
	go func() {
		<-done
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if f.hanging[o]--; f.hanging[o] == 0 {
			delete(f.hanging, o)
		}
	}()
}

// passable reports an error that wraps ErrHangs for an obstacle that holds
// somebody up at this moment.
func (f *Finder) passable(o obstacle) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch {
	case f.hanging[o] > 0:
		return fmt.Errorf("%s: %w", o, ErrHangs)
	case len(f.hanging) >= mostHanging:
		return fmt.Errorf("%s: %w at %d others, and more are not tried", o, ErrHangs, len(f.hanging))
	}
	return nil
}

// Hanging lists what holds up looks at this moment.
func (f *Finder) Hanging() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var all []string
	for o := range f.hanging {
		all = append(all, o.String())
	}
	slices.Sort(all)
	return all
}

// claim waits until nobody else works on the same, so that a file which hundreds
// of processes use is read once. It gives up when the obstacle that all of them
// have to pass hangs. release lets the next one have it.
func (f *Finder) claim(l *look, what any, behind obstacle) (release func(), err error) {
	mine := make(chan struct{})
	l.enter(nowhere)
	for {
		others, busy := f.tryClaim(what, mine)
		if !busy {
			l.enter(behind)
			return func() {
				f.mutex.Lock()
				delete(f.claimed, what)
				f.mutex.Unlock()
				close(mine)
			}, nil
		}
		select {
		case <-others:
		case <-time.After(f.patience):
			if err := f.passable(behind); err != nil {
				return nil, err
			}
		}
	}
}

// claimFile claims a file, unless its file system hangs.
func (f *Finder) claimFile(l *look, id FileID) (release func(), err error) {
	if err := f.reach(l, id.Device); err != nil {
		return nil, err
	}
	return f.claim(l, inodeKey{id.Device, id.Inode}, obstacle{device: id.Device})
}

// tryClaim returns what is closed when the others have done.
func (f *Finder) tryClaim(what any, mine chan struct{}) (others <-chan struct{}, busy bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if theirs, busy := f.claimed[what]; busy {
		return theirs, true
	}
	f.claimed[what] = mine
	return nil, false
}

// fileSet is a set of files. It is safe for concurrent use: a look that hangs may
// go on when nobody expects it any more.
type fileSet struct {
	mutex sync.Mutex
	keys  map[inodeKey]bool
}

func newFileSet() *fileSet { return &fileSet{keys: map[inodeKey]bool{}} }

func (s *fileSet) add(key inodeKey) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.keys[key] = true
}

func (s *fileSet) has(key inodeKey) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.keys[key]
}
