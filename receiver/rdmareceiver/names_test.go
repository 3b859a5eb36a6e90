package rdmareceiver

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	metricsDocument = "../../docs/metrics.md"
	metricsBegin    = "<!-- metrics -->\n"
	metricsEnd      = "<!-- /metrics -->"
)

// The list of metrics in docs/metrics.md is that of metadata.yaml and of the
// histograms. With UPDATE_GOLDEN set it is written, and the test fails so that this
// cannot go unnoticed.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(metricsDocument)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), metricsBegin)
	require.True(t, ok)
	list, after, ok := strings.Cut(rest, metricsEnd)
	require.True(t, ok)
	want := listOfMetrics(declared(t))
	if updating() {
		require.NoError(t, os.WriteFile(metricsDocument, []byte(before+metricsBegin+want+metricsEnd+after), 0o644))
		t.Error("the list was written")
	}
	assert.Equal(t, want, list, "run the test with UPDATE_GOLDEN=1")
}

// listed is a metric as the list has it.
type listed struct {
	name, kind, unit, description string
	attributes                    []string
}

func listOfMetrics(d declaration) string {
	var all []listed
	for name, m := range d.Metrics {
		kind := "gauge"
		if m.Sum != nil {
			kind = "sum"
			if m.Sum.Monotonic {
				kind = "counter"
			}
		}
		all = append(all, listed{name, kind, m.Unit, m.Description, m.Attributes})
	}
	for _, h := range histogramMetrics() {
		all = append(all, listed{h.Name, "histogram", h.Unit, h.Description, h.Attributes})
	}
	slices.SortFunc(all, func(a, b listed) int { return cmp.Compare(a.name, b.name) })
	var out strings.Builder
	out.WriteString("| metric | kind | unit | attributes | |\n| --- | --- | --- | --- | --- |\n")
	for _, m := range all {
		fmt.Fprintf(&out, "| `%s` | %s | `%s` | `%s` | %s |\n", m.name, m.kind, m.unit, strings.Join(m.attributes, "`, `"), m.description)
	}
	return out.String()
}

// named finds names of signals and attributes, and of the receiver's own metrics. One
// that ends in an asterisk stands for all that begin so.
var named = regexp.MustCompile(`(?:^|[^a-z0-9_./-])(rdma\.[a-z0-9_.]*[a-z0-9_]|otelcol_rdma_[a-z0-9_]+)(\.?\*)?`)

// Every name that a document tells exists. The changelog tells of old ones, too.
func TestDocumentedNamesExist(t *testing.T) {
	known := everyName(declared(t))
	paths, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	paths = append(paths, "../../README.md", "README.md", "../../extension/rdmaradarextension/README.md")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, found := range named.FindAllStringSubmatch(string(text), -1) {
			name, more := found[1], found[2] != ""
			assert.True(t, known[name] || more && beginsOne(known, name), "%s names %s, which is nowhere declared", path, name)
		}
	}
}

func beginsOne(known map[string]bool, prefix string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(name string) bool { return strings.HasPrefix(name, prefix) })
}

func everyName(d declaration) map[string]bool {
	known := map[string]bool{}
	for name := range d.Metrics {
		known[name] = true
	}
	for _, h := range histogramMetrics() {
		known[h.Name] = true
	}
	for name := range d.Attributes {
		known[name] = true
	}
	for name := range d.Events {
		known[name] = true
	}
	for name := range d.Telemetry.Metrics {
		known["otelcol_"+name] = true
	}
	return known
}

// Every kind of log record is explained.
func TestEventsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(metricsDocument)
	require.NoError(t, err)
	for name := range declared(t).Events {
		assert.Contains(t, string(text), "\n| `"+name+"` | ")
	}
}
