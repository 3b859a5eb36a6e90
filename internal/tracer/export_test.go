package tracer

import (
	"slices"
	"strings"
	"time"
)

// OnlyFilesUnder keeps the tracer from probing libraries outside a directory,
// so that what else uses verbs on the machine does not show in a test's counts.
func OnlyFilesUnder(cfg Config, dir string) Config {
	cfg.takesFile = func(path string) bool { return strings.HasPrefix(path, dir+"/") }
	return cfg
}

// FreeCookies are what is left for the probes of more libraries.
func FreeCookies(t *Tracer) []uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.libraries.cookies)
}

// AttachReturns probes the returns of all posts that are observed without.
func AttachReturns(t *Tracer) error {
	return t.forEachPost(func(f *postFunction) error {
		if len(f.leave) > 0 {
			return nil
		}
		return t.side.attachReturns(f, t.kind)
	})
}

// DetachReturns takes the probes of AttachReturns off, when the posts that were
// entered with them had the time to return.
func DetachReturns(t *Tracer) error {
	if err := t.forEachPost(t.side.releaseReturns); err != nil {
		return err
	}
	time.Sleep(leavingTime)
	return t.forEachPost(t.side.detachReturns)
}

// TrustsSites reports whether no post failed without passing a site.
func TrustsSites(t *Tracer) (bool, error) {
	trusted := true
	err := t.forEachPost(func(f *postFunction) error {
		ok, err := t.side.trustsSites(f)
		trusted = trusted && ok
		return err
	})
	return trusted, err
}

// forEachPost visits the posts that have sites.
func (t *Tracer) forEachPost(visit func(*postFunction) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.libraries.attachments {
		for _, f := range a.posts {
			if f.sites == nil {
				continue
			}
			if err := visit(f); err != nil {
				return err
			}
		}
	}
	return nil
}
