package rdmareceiver

import (
	"runtime/debug"
	"testing"
)

// The scope has the version of the module that is built in, or that of the
// distribution where the module has none.
func TestModuleVersion(t *testing.T) {
	const distribution = "0.1.0"
	other := &debug.Module{Path: "go.opentelemetry.io/collector", Version: "v0.161.0"}
	for name, tc := range map[string]struct {
		module *debug.Module
		want   string
	}{
		"released":                   {&debug.Module{Path: modulePath, Version: "v1.2.3"}, "v1.2.3"},
		"replaced by a directory":    {&debug.Module{Path: modulePath, Version: "v0.0.0", Replace: &debug.Module{Path: "../../"}}, distribution},
		"of a directory, since 1.26": {&debug.Module{Path: modulePath, Version: "v0.0.0", Replace: &debug.Module{Path: "../..", Version: "(devel)"}}, distribution},
		"replaced by a fork":         {&debug.Module{Path: modulePath, Version: "v1.2.3", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.4"}}, "v1.2.4"},
		"in a workspace":             {&debug.Module{Path: modulePath, Version: "(devel)"}, distribution},
		"the main module":            {nil, distribution},
	} {
		t.Run(name, func(t *testing.T) {
			dependencies := []*debug.Module{other}
			if tc.module != nil {
				dependencies = append(dependencies, tc.module)
			}
			if got := moduleVersion(dependencies, distribution); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
