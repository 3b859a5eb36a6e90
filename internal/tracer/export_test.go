package tracer

import "strings"

// OnlyFilesUnder keeps the tracer from probing libraries outside a directory,
// so that what else uses verbs on the machine does not show in a test's counts.
func OnlyFilesUnder(cfg Config, dir string) Config {
	cfg.takesFile = func(path string) bool { return strings.HasPrefix(path, dir+"/") }
	return cfg
}
