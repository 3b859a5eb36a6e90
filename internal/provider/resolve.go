package provider

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// resolve turns the candidates of one process, or of one installation, into
// files: a provider's tables have the layout of the libibverbs beside it.
func (f *Finder) resolve(l *look, candidates []candidate, errs *errorList) []File {
	var files []File
	for _, c := range candidates {
		if errors.Is(c.known.err, ErrMachine) {
			// Counted; a machine may have libraries of another architecture.
			continue
		}
		if c.known.err != nil {
			errs.add(fmt.Errorf("%s: %w", c.file.Path, c.known.err))
			continue
		}
		if c.linked != nil {
			c.file.Library = c.linked
			files = append(files, c.file)
			continue
		}
		if c.known.kind == Verbs {
			c.file.Library = c.known.library
			files = append(files, c.file)
			continue
		}
		library, err := f.provider(l, &c, candidates)
		if err != nil {
			errs.add(fmt.Errorf("%s: %w", c.file.Path, err))
			continue
		}
		c.file.Library = library
		files = append(files, c.file)
	}
	return files
}

// provider returns the analysis of a provider beside the other candidates.
func (f *Finder) provider(l *look, c *candidate, beside []candidate) (*Library, error) {
	if c.known.kind != Provider {
		return nil, ErrNotVerbs
	}
	release, err := f.claimFile(l, c.file.ID)
	if err != nil {
		return nil, err
	}
	defer release()
	slots, err := slotsBeside(c.known.abi, beside)
	if err != nil {
		if _, counted := f.resultOf(c.known, Slots{}); !counted {
			f.countError(err)
			f.keepResult(c.known, Slots{}, result{err: err})
		}
		return nil, err
	}
	if r, ok := f.resultOf(c.known, slots); ok {
		return r.library, r.err
	}
	file, err := f.Open(c.file)
	if err != nil {
		return nil, f.unreadable(err)
	}
	defer func() { _ = file.Close() }()
	library, err := f.inspect(l, file, slots)
	if err != nil && !Refused(err) {
		return nil, f.unreadable(err)
	}
	switch {
	case err != nil:
		f.countError(err)
	case library.Unresolved > 0:
		f.count(func(c *Counters) { c.Unresolved++ })
	}
	f.keepResult(c.known, slots, result{library, err})
	return library, err
}

func (f *Finder) resultOf(k *known, slots Slots) (result, bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	r, ok := k.results[slots]
	return r, ok
}

func (f *Finder) keepResult(k *known, slots Slots, r result) {
	const maxResults = 8
	f.mutex.Lock()
	defer f.mutex.Unlock()
	remember(k.results, maxResults, slots, r)
}

// inspect analyses a provider unless a file with the same content has been.
func (f *Finder) inspect(l *look, file io.ReaderAt, slots Slots) (*Library, error) {
	img, err := openImage(file)
	if err != nil {
		return nil, err
	}
	kind, a, err := img.classify()
	if err != nil {
		return nil, err
	}
	if kind != Provider {
		return nil, fmt.Errorf("%w: the file has changed", ErrNotVerbs)
	}
	return f.analysisOf(l, a, analysisKey{img.fingerprint(), slots})
}

// analysisOf may take a processor for long, and the file has been read by then.
func (f *Finder) analysisOf(l *look, a *analysis, key analysisKey) (*Library, error) {
	release, err := f.claim(l, key, nowhere)
	if err != nil {
		return nil, err
	}
	defer release()
	f.mutex.Lock()
	library, ok := f.analyses[key]
	f.mutex.Unlock()
	if ok {
		return library, nil
	}
	library, err = f.analyse(a, key)
	if err == nil {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		remember(f.analyses, maxAnalyses, key, library)
	}
	return library, err
}

// analyse analyses a provider unless its analysis is on disk.
func (f *Finder) analyse(a *analysis, key analysisKey) (*Library, error) {
	if library := f.cache.load(a, key); library != nil {
		f.count(func(c *Counters) { c.Restored++ })
		return library, nil
	}
	f.count(func(c *Counters) { c.Analysed++ })
	library, err := a.inspectProvider(key.slots)
	if err == nil {
		f.cache.save(key, library)
	}
	return library, err
}

// slotsBeside finds the layout of the libibverbs that the provider was linked
// against. Where several have the same private interface they must agree.
func slotsBeside(abi string, beside []candidate) (Slots, error) {
	var slots Slots
	var found bool
	for _, c := range beside {
		if c.known.kind != Verbs || c.known.err != nil || c.known.library.ABI != abi {
			continue
		}
		if found && slots != c.known.slots {
			return Slots{}, fmt.Errorf("%w: two libraries libibverbs with the interface %q and different tables", ErrUnresolved, abi)
		}
		slots, found = c.known.slots, true
	}
	if !found {
		return Slots{}, fmt.Errorf("%w: no libibverbs with the interface %q beside it", ErrUnresolved, abi)
	}
	return slots, nil
}

// mentionsAnywhere looks for a name in a file of unknown structure.
func mentionsAnywhere(file io.ReaderAt, name string) bool {
	wanted := append([]byte(name), 0)
	buffer := make([]byte, 64<<10)
	have := 0
	reader := io.NewSectionReader(file, 0, maxLoaded)
	for {
		n, err := reader.Read(buffer[have:])
		have += n
		if bytes.Contains(buffer[:have], wanted) {
			return true
		}
		if err != nil {
			return false
		}
		have = copy(buffer, buffer[have-min(len(wanted)-1, have):have])
	}
}

// errorList collects errors up to a bound.
type errorList struct {
	errs []error
}

func (l *errorList) add(err error) {
	const maxErrors = 8
	if len(l.errs) < maxErrors {
		l.errs = append(l.errs, err)
	}
}

func (l *errorList) join(what string) error {
	if len(l.errs) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", what, errors.Join(l.errs...))
}
