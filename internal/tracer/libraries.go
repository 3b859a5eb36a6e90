package tracer

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// fileKey names a file for as long as its probes hold it: the inode number is
// not used for another one meanwhile.
type fileKey struct{ device, inode uint64 }

func keyOf(id provider.FileID) fileKey { return fileKey{id.Device, id.Inode} }

// libraries are the files that are probed.
type libraries struct {
	side *kernelSide
	kind linkKind
	// writes tells of files that are written to while they are probed; nil where
	// that cannot be watched.
	writes      *writeWatch
	attachments map[fileKey]*attachment
	// refused are files that could not be probed, duplicates those that are
	// probed through another path.
	refused    map[fileKey]refusal
	duplicates map[fileKey]provider.FileID
	// cookies are free for the next files, the longest unused first.
	cookies []uint32
	// attached is how many files were ever attached to.
	attached uint64
	// leaving are those whose probes were taken off and may still be hit.
	leaving []*attachment
	// unobserved counts work requests that were outstanding when their library
	// ceased to be observed.
	unobserved uint64
}

func newLibraries(side *kernelSide, kind linkKind, writes *writeWatch) *libraries {
	l := &libraries{
		side:        side,
		writes:      writes,
		kind:        kind,
		attachments: map[fileKey]*attachment{},
		refused:     map[fileKey]refusal{},
		duplicates:  map[fileKey]provider.FileID{},
	}
	// A queue on which nothing was posted yet has no library: its cookie is 0.
	for cookie := uint32(1); cookie < side.libraries.length; cookie++ {
		l.cookies = append(l.cookies, cookie)
	}
	return l
}

// wants reports whether the file is to be probed and is not, or not all of it.
func (l *libraries) wants(file provider.File) bool {
	key := keyOf(file.ID)
	if a := l.attachments[key]; a != nil && a.serves(file) {
		return false
	}
	return !l.refused[key].holds(file.ID, time.Now()) && l.duplicates[key] != file.ID
}

// serves reports whether the probes are those for the file. Of one that has
// rdma-core linked in, more functions may have become known since.
func (a *attachment) serves(file provider.File) bool {
	if a.file.ID != file.ID || !file.Library.Linked {
		return a.file.ID == file.ID
	}
	return !slices.ContainsFunc(file.Library.Targets, func(t provider.Target) bool {
		return !slices.Contains(a.file.Library.Targets, t)
	})
}

// refusal is why a file is not tried: it could not be probed some time ago.
type refusal struct {
	id    provider.FileID
	until time.Time
}

// refusedTime is for how long a file is left alone that could not be probed:
// what it lacked, such as memory or room for one more library, may be there
// later.
const refusedTime = time.Minute

func (r refusal) holds(id provider.FileID, now time.Time) bool {
	return r.id == id && now.Before(r.until)
}

// refuse leaves a file alone for a while, and reports whether it had been tried
// before. Refusals of long ago are forgotten.
func (l *libraries) refuse(id provider.FileID) (again bool) {
	now := time.Now()
	maps.DeleteFunc(l.refused, func(_ fileKey, r refusal) bool { return now.Sub(r.until) > 10*refusedTime })
	again = l.refused[keyOf(id)].id == id
	l.refused[keyOf(id)] = refusal{id: id, until: now.Add(refusedTime)}
	return again
}

// vacate detaches from what the inode of a file held before, whose places mean
// nothing any more, and from the file itself where more of its functions are to be
// probed. It returns the attachment that is to be waited for, without the lock,
// until nothing is probed there; nil when nothing is. The kernel keeps the
// instruction below a probe as long as any stands in its place.
func (l *libraries) vacate(file provider.File) (*attachment, error) {
	key := keyOf(file.ID)
	if before := l.attachments[key]; before != nil && !before.serves(file) {
		before.resets = before.file.ID == file.ID
		if err := l.detach(before); err != nil {
			return nil, err
		}
	}
	err := l.reap()
	for _, a := range l.leaving {
		if keyOf(a.file.ID) == key {
			return a, err
		}
	}
	return nil, err
}

// attach probes an open file whose place is vacant, and takes it over.
func (l *libraries) attach(file provider.File, open *os.File) (*attachment, error) {
	foreign, err := l.room(file, open)
	if err != nil {
		return nil, errors.Join(err, open.Close())
	}
	watch, err := l.watchWrites(file, open)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("probing %s: %w", file.DisplayPath, err), open.Close())
	}
	a, err := newAttachment(file, open, l.cookies[0])
	if err != nil {
		l.forgetWrites(watch, file)
		return nil, err
	}
	a.watch, a.foreign = watch, foreign
	l.cookies = l.cookies[1:]
	if err := l.observe(a); err != nil {
		return nil, errors.Join(err, l.detach(a))
	}
	a.order = l.attached
	l.attached++
	l.attachments[keyOf(file.ID)] = a
	return a, nil
}

func (l *libraries) watchWrites(file provider.File, open *os.File) (uint32, error) {
	if l.writes == nil {
		return 0, nil
	}
	return l.writes.watch(open, file.ID)
}

func (l *libraries) forgetWrites(watch uint32, file provider.File) {
	if l.writes != nil {
		l.writes.forget(watch, keyOf(file.ID))
	}
}

// observe probes the file and lets what its probes see count.
func (l *libraries) observe(a *attachment) error {
	if err := l.side.libraries.store(a.cookie, &bpf.TrackerLibrary{Linked: asUint32(a.file.Library.Linked)}); err != nil {
		return err
	}
	if err := l.side.prepare(a); err != nil {
		return err
	}
	if err := l.side.place(a, l.kind); err != nil {
		return err
	}
	now, err := monotonic()
	if err != nil {
		return err
	}
	return l.side.libraries.store64(a.cookie, unsafe.Offsetof(bpf.TrackerLibrary{}.AttachedNs), now)
}

// detach begins to take the probes off a file. What they see does not count any
// more.
func (l *libraries) detach(a *attachment) error {
	delete(l.attachments, keyOf(a.file.ID))
	l.forgetWrites(a.watch, a.file)
	// One of them may be the only path to the file now.
	clear(l.duplicates)
	err := errors.Join(
		l.side.forgetSetsOf(a),
		l.side.libraries.store32(a.cookie, unsafe.Offsetof(bpf.TrackerLibrary{}.Dropped), 1),
		l.side.libraries.store64(a.cookie, unsafe.Offsetof(bpf.TrackerLibrary{}.AttachedNs), 0),
		a.open.Close(),
	)
	a.closer.close(a.takeLinks())
	l.leaving = append(l.leaving, a)
	if err != nil {
		return fmt.Errorf("detaching from %s: %w", a.file.DisplayPath, err)
	}
	return nil
}

// reap gives back what probes had that are gone by now: their programs read it.
func (l *libraries) reap() error {
	var errs []error
	l.leaving = slices.DeleteFunc(l.leaving, func(a *attachment) bool {
		if a.closer.busy() {
			return false
		}
		if err := a.closer.takeErrors(); err != nil {
			errs = append(errs, fmt.Errorf("detaching from %s: %w", a.file.DisplayPath, err))
		}
		if a.resets {
			lost, err := l.side.resetQueues(a.cookie)
			l.unobserved += lost
			errs = append(errs, err)
		}
		l.side.giveBackSites(a)
		l.cookies = append(l.cookies, a.cookie)
		return true
	})
	return errors.Join(errs...)
}

// dropDuplicates detaches from files that are probed through another path as
// well, and returns them. Of two that see the same hits either may have kept
// them; the younger one goes, so that one always stays.
func (l *libraries) dropDuplicates() ([]*attachment, error) {
	dropped, err := l.younger()
	errs := []error{err}
	for _, a := range dropped {
		errs = append(errs, l.detach(a))
	}
	for _, a := range dropped {
		l.duplicates[keyOf(a.file.ID)] = a.file.ID
	}
	return dropped, errors.Join(errs...)
}

// younger are the attachments of which an older one sees the same hits. What
// both have counted of each other is taken back.
func (l *libraries) younger() ([]*attachment, error) {
	byCookie := map[uint32]*attachment{}
	for _, a := range l.attachments {
		byCookie[a.cookie] = a
	}
	var found []*attachment
	for _, a := range byCookie {
		library, err := l.side.libraries.load(a.cookie)
		if err != nil {
			return nil, err
		}
		if library.Duplicates == 0 {
			continue
		}
		if err := l.side.libraries.store64(a.cookie, unsafe.Offsetof(library.Duplicates), 0); err != nil {
			return nil, err
		}
		keeper := byCookie[uint32(library.Keeper)]
		if keeper == nil || keeper == a {
			continue // It has gone since.
		}
		if keeper.order > a.order {
			a = keeper
		}
		if !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	return found, nil
}

// unusedTime is for how long nobody must have used a library before its probes
// go: attaching anew costs the next process its first requests.
const unusedTime = 10 * time.Minute

// dropUnused detaches from files that were found in a process and that no
// process has mapped for long. Files that are installed stay probed.
func (l *libraries) dropUnused(used []provider.File, now time.Time) ([]*attachment, error) {
	var dropped []*attachment
	var errs []error
	for key, a := range l.attachments {
		inUse := a.file.PID == 0 || slices.ContainsFunc(used, func(f provider.File) bool { return keyOf(f.ID) == key })
		if inUse || a.used.IsZero() {
			a.used = now
			continue
		}
		if now.Sub(a.used) > unusedTime {
			dropped = append(dropped, a)
			errs = append(errs, l.detach(a))
		}
	}
	return dropped, errors.Join(errs...)
}

// close detaches from everything at once, and waits until nothing is probed.
func (l *libraries) close() error {
	var system closer
	system.closeAll(&l.side.system)
	errs := []error{l.side.interrupts.end()}
	if l.writes != nil {
		errs = append(errs, l.writes.close())
	}
	for _, a := range l.attachments {
		a.closer.close(a.takeLinks())
		errs = append(errs, a.open.Close())
		l.leaving = append(l.leaving, a)
	}
	clear(l.attachments)
	for _, a := range l.leaving {
		a.closer.wait()
	}
	l.side.interrupts.closer.wait()
	system.wait()
	return errors.Join(append(errs, l.reap(), system.takeErrors(), l.side.interrupts.closer.takeErrors())...)
}
