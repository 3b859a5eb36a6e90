//go:build e2e

package tracer_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// A library that is overwritten in place between two runs of a program, as with cp,
// leaves the second run as it would be without the tracer, and that is traced too.
func TestOverwrittenLibraryBreaksNoProgram(t *testing.T) {
	beside(t)
	dir := copyLibraries(t)
	provider := filepath.Join(dir, "libverbsim-rdmav34.so")
	var contents [][]byte
	for _, name := range []string{"libverbsim-rdmav34.so", "libverbsim-rdmav34-nocet.so"} {
		content, err := os.ReadFile(binary(t, name))
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, content)
	}
	tr := startTracer(t, tracer.Config{Threshold: time.Hour})
	const requests = 2000
	for round := range 6 {
		w := startHeld(t, dir, "--requests", "2000", "--rate", "4000", "--seconds", "60")
		waitForProbes(t, tr, dir)
		w.release()
		truth, _ := w.wait() // It fails when the program did not end well.
		if truth.Counts.Completions != requests {
			t.Fatalf("round %d: %d requests completed of %d", round, truth.Counts.Completions, requests)
		}
		// The file is not renamed: the inode, by which the kernel knows probes, stays.
		if err := os.WriteFile(provider, contents[(round+1)%2], 0o700); err != nil {
			t.Fatal(err)
		}
		if !tracer.IsLeft(tr, provider, 30*time.Second) {
			t.Fatalf("round %d: %s is still probed", round, provider)
		}
	}
	if seen := snapshot(t, tr).Completions.Seen; seen < 5*requests {
		t.Errorf("%d completions were seen in six runs of %d", seen, requests)
	}
}

// The probes go from the library that is written to, and from no other.
func TestProbesLeaveAnOverwrittenLibrarySoon(t *testing.T) {
	beside(t)
	dir := copyLibraries(t)
	tr := startTracer(t, tracer.Config{Threshold: time.Hour})
	introduce(t, tr, dir)
	provider := filepath.Join(dir, "libverbsim-rdmav34.so")
	f, err := os.OpenFile(provider, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if !tracer.IsLeft(tr, provider, 30*time.Second) {
		t.Fatal("it is still probed")
	}
	s := snapshot(t, tr)
	if !slices.ContainsFunc(s.Probes, func(p verbs.ProbeInfo) bool { return p.Library == filepath.Join(dir, "libibverbs.so.1") }) {
		t.Errorf("the other library is not probed any more: %+v", s.Probes)
	}
}
