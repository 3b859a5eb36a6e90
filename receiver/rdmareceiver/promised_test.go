package rdmareceiver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// promisedNames has the names that docs/compatibility.md makes a promise about.
var promisedNames = filepath.Join("testdata", "names.txt")

// renames has the names of the list that are exported no more, and what took their place
// a minor release before.
func renames() map[string]string { return map[string]string{} }

// No name goes away unnoticed. UPDATE_GOLDEN adds what is new, and takes nothing away.
func TestPromisedNamesAreKept(t *testing.T) {
	text, err := os.ReadFile(promisedNames)
	require.NoError(t, err)
	listed, now := strings.Fields(string(text)), namesOf(declared(t))
	if updating() {
		listed = slices.Compact(slices.Sorted(slices.Values(slices.Concat(listed, now))))
		require.NoError(t, os.WriteFile(promisedNames, []byte(strings.Join(listed, "\n")+"\n"), 0o644))
		t.Error("the list was written")
	}
	unlisted := slices.DeleteFunc(slices.Clone(now), func(name string) bool { return slices.Contains(listed, name) })
	assert.Empty(t, unlisted, "run the test with UPDATE_GOLDEN=1")
	for _, name := range listed {
		if !slices.Contains(now, name) {
			assertRenamed(t, name, now)
		}
	}
}

func assertRenamed(t *testing.T, name string, now []string) {
	t.Helper()
	instead, renamed := renames()[name]
	if !renamed {
		t.Errorf("%s is gone: export it beside its new name for a minor release, then list both in renames (docs/compatibility.md)", name)
		return
	}
	assert.Contains(t, now, instead, "%s was renamed to what is not there", name)
	changes, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	_, plain, _ := strings.Cut(name, "=")
	assert.Contains(t, string(changes), plain, "the changelog does not tell of the rename")
}

// namesOf are all names but those of routes, which may go with any release: of what kind
// each is, and of an attribute of which metric or record.
func namesOf(d declaration) []string {
	var all []string
	add := func(kind, name string, attributes []string) {
		if strings.HasPrefix(name, "rdma.route.") {
			return
		}
		all = append(all, kind+"="+name)
		for _, attribute := range attributes {
			all = append(all, kind+"="+name+"/"+attribute)
		}
	}
	for name := range d.ResourceAttributes {
		add("resource", name, nil)
	}
	for name, m := range d.Metrics {
		add("metric", name, m.Attributes)
	}
	for _, h := range histogramMetrics() {
		add("metric", h.Name, h.Attributes)
	}
	for name, e := range d.Events {
		add("record", name, e.Attributes)
	}
	add("span", "*", d.Events[eventSlow].Attributes)
	for operation := range verbs.Operation(verbs.NumOperations) {
		add("span", operation.String(), nil)
	}
	for _, cause := range diagnose.Causes() {
		add("cause", cause.Name, nil)
	}
	for name, m := range d.Telemetry.Metrics {
		add("own", "otelcol_"+name, m.Attributes)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
