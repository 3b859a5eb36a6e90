package tracer

import (
	"errors"
	"fmt"
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
	side        *kernelSide
	kind        linkKind
	attachments map[fileKey]*attachment
	// refused are files that cannot be probed, duplicates those that are
	// probed through another path.
	refused, duplicates map[fileKey]provider.FileID
	// cookies are free for the next files, the longest unused first.
	cookies []uint32
}

func newLibraries(side *kernelSide, kind linkKind) *libraries {
	l := &libraries{
		side:        side,
		kind:        kind,
		attachments: map[fileKey]*attachment{},
		refused:     map[fileKey]provider.FileID{},
		duplicates:  map[fileKey]provider.FileID{},
	}
	// A queue on which nothing was posted yet has no library: its cookie is 0.
	for cookie := uint32(1); cookie < side.libraries.length; cookie++ {
		l.cookies = append(l.cookies, cookie)
	}
	return l
}

// wants reports whether the file is to be probed and is not.
func (l *libraries) wants(id provider.FileID) bool {
	key := keyOf(id)
	if a := l.attachments[key]; a != nil && a.file.ID == id {
		return false
	}
	return l.refused[key] != id && l.duplicates[key] != id
}

// attach probes an open file, and takes it over. Where the same inode was probed with other
// contents, those probes go first: their places mean nothing any more.
func (l *libraries) attach(file provider.File, open *os.File) (*attachment, error) {
	key := keyOf(file.ID)
	if before := l.attachments[key]; before != nil {
		if err := l.detach(before); err != nil {
			return nil, errors.Join(err, open.Close())
		}
	}
	if len(l.cookies) == 0 {
		return nil, errors.Join(fmt.Errorf("probing %s: %d libraries are probed already", file.DisplayPath, l.side.libraries.length-1), open.Close())
	}
	cookie := l.cookies[0]
	l.cookies = l.cookies[1:]
	if err := l.side.libraries.store(cookie, &bpf.TrackerLibrary{}); err != nil {
		return nil, errors.Join(err, open.Close())
	}
	a, err := l.side.attach(file, open, cookie, l.kind)
	if err != nil {
		l.cookies = append(l.cookies, cookie)
		return nil, err
	}
	l.attachments[key] = a
	now, err := monotonic()
	if err == nil {
		err = l.side.libraries.store64(cookie, unsafe.Offsetof(bpf.TrackerLibrary{}.AttachedNs), now)
	}
	if err != nil {
		return nil, errors.Join(err, l.detach(a))
	}
	return a, nil
}

// detach takes the probes off a file.
func (l *libraries) detach(a *attachment) error {
	delete(l.attachments, keyOf(a.file.ID))
	// One of them may be the only path to the file now.
	clear(l.duplicates)
	err := errors.Join(
		l.side.forgetSetsOf(a),
		l.side.libraries.store32(a.cookie, unsafe.Offsetof(bpf.TrackerLibrary{}.Dropped), 1),
		l.side.libraries.store64(a.cookie, unsafe.Offsetof(bpf.TrackerLibrary{}.AttachedNs), 0),
		a.close(),
	)
	for _, f := range a.posts {
		l.side.freeSites = append(l.side.freeSites, f.siteIndexes...)
	}
	for _, f := range a.polls {
		l.side.freeSites = append(l.side.freeSites, f.siteIndexes...)
	}
	l.cookies = append(l.cookies, a.cookie)
	if err != nil {
		return fmt.Errorf("detaching from %s: %w", a.file.DisplayPath, err)
	}
	return nil
}

// dropDuplicates detaches from files that are probed through another path as
// well, and returns them.
func (l *libraries) dropDuplicates() ([]*attachment, error) {
	var dropped []*attachment
	for _, a := range l.attachments {
		library, err := l.side.libraries.load(a.cookie)
		if err != nil {
			return nil, err
		}
		if library.Duplicates != 0 {
			dropped = append(dropped, a)
		}
	}
	var errs []error
	for _, a := range dropped {
		errs = append(errs, l.detach(a))
	}
	for _, a := range dropped {
		l.duplicates[keyOf(a.file.ID)] = a.file.ID
	}
	return dropped, errors.Join(errs...)
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

// close detaches from everything at once.
func (l *libraries) close() error {
	links := l.side.system
	l.side.system = nil
	var errs []error
	for _, a := range l.attachments {
		links = append(links, a.takeLinks()...)
		errs = append(errs, a.open.Close())
	}
	clear(l.attachments)
	return errors.Join(append(errs, closeLinks(links))...)
}
