package tracer

import (
	"slices"
	"strings"
	"time"
	"unsafe"
)

// OnlyFilesUnder keeps the tracer from probing libraries outside a directory,
// so that what else uses verbs on the machine does not show in a test's counts.
func OnlyFilesUnder(cfg Config, dir string) Config {
	cfg.takesFile = func(path string) bool { return strings.HasPrefix(path, dir+"/") }
	return cfg
}

// EvidenceEvery looks at empty polls more often than is good for a poller.
func EvidenceEvery(cfg Config, every time.Duration) Config {
	cfg.evidenceEvery = every
	return cfg
}

// Suspect makes completions of every library seem not to have added up, so that
// their completion sites are compared once more.
func Suspect(t *Tracer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.libraries.attachments {
		library, err := t.side.libraries.load(a.cookie)
		if err != nil {
			return err
		}
		if err := t.side.libraries.store64(a.cookie, unsafe.Offsetof(library.Suspicions), library.Suspicions+1); err != nil {
			return err
		}
	}
	return nil
}

// FreeCookies are what is left for the probes of more libraries.
func FreeCookies(t *Tracer) []uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.libraries.cookies)
}

// TrustsSites reports whether no post failed without passing a site.
func TrustsSites(t *Tracer) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.libraries.attachments {
		library, err := t.side.libraries.load(a.cookie)
		if err != nil {
			return false, err
		}
		for _, f := range a.posts {
			if f.sites == nil || library.Unmarked[f.index] != 0 {
				return false, nil
			}
		}
	}
	return true, nil
}
