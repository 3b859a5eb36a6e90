package tracer

import (
	"slices"
	"strings"
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
