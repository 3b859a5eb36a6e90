package provider

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// resolve turns the candidates of one process, or of one installation, into
// files: a provider's tables have the layout of the libibverbs beside it.
func (f *Finder) resolve(candidates []candidate, errs *errorList) []File {
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
		if c.known.kind == Verbs {
			c.file.Library = c.known.library
			files = append(files, c.file)
			continue
		}
		library, err := f.provider(&c, candidates)
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
func (f *Finder) provider(c *candidate, beside []candidate) (*Library, error) {
	slots, err := slotsBeside(c.known.abi, beside)
	if err != nil {
		if _, counted := c.known.results[Slots{}]; !counted {
			f.countError(err)
			c.known.results[Slots{}] = result{err: err}
		}
		return nil, err
	}
	if r, ok := c.known.results[slots]; ok {
		return r.library, r.err
	}
	file, err := f.Open(c.file)
	if err != nil {
		return nil, f.unreadable(err)
	}
	defer func() { _ = file.Close() }()
	library, err := f.inspect(file, slots)
	if err != nil && !refused(err) {
		return nil, f.unreadable(err)
	}
	switch {
	case err != nil:
		f.countError(err)
	case library.Unresolved > 0:
		f.counters.Unresolved++
	}
	const maxResults = 8
	remember(c.known.results, maxResults, slots, result{library, err})
	return library, err
}

// inspect analyses a provider unless a file with the same content has been.
func (f *Finder) inspect(file io.ReaderAt, slots Slots) (*Library, error) {
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
	key := analysisKey{img.fingerprint(), slots}
	if library, ok := f.analyses[key]; ok {
		return library, nil
	}
	library, err := f.analyse(a, key)
	if err == nil {
		remember(f.analyses, maxAnalyses, key, library)
	}
	return library, err
}

// analyse analyses a provider unless its analysis is on disk.
func (f *Finder) analyse(a *analysis, key analysisKey) (*Library, error) {
	if library := f.cache.load(a, key); library != nil {
		f.counters.Restored++
		return library, nil
	}
	f.counters.Analysed++
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
