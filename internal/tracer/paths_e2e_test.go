//go:build e2e

package tracer_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/testprogram"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// overlays mounts a directory with the provider twice, as two containers that
// share a layer have it, and returns both paths of the file.
func overlays(t *testing.T) []string {
	t.Helper()
	requireRoot(t)
	const name = "libverbsim-rdmav34.so"
	dir, err := os.MkdirTemp(homeOf(t).dir, "overlays-")
	if err != nil {
		t.Fatal(err)
	}
	lower := filepath.Join(dir, "lower")
	content, err := os.ReadFile(binary(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(lower, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := testprogram.Write(filepath.Join(lower, name), content, 0o755); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, container := range []string{"first", "second"} {
		merged := filepath.Join(dir, container)
		if err := os.Mkdir(merged, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("overlay", merged, "overlay", syscall.MS_RDONLY, "lowerdir="+lower+":"+t.TempDir()); err != nil {
			t.Skipf("this kernel mounts no overlay: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(merged, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		paths = append(paths, filepath.Join(merged, name))
	}
	return paths
}

// A library that two containers share through their layers is one file with two
// paths: once both were probed, one of them goes and the other one counts what
// both containers do, exactly.
func TestSharedLayerIsCountedOnce(t *testing.T) {
	beside(t)
	paths := overlays(t)
	tr := startTracer(t, everything)
	collected := collect(tr)
	busy := make([]*workload, len(paths))
	for i, path := range paths {
		busy[i] = startWorkload(t, "nccl", "--seconds", "100", "--provider", path)
		busy[i].waitReady()
		busy[i].release()
	}
	waitForDuplicate(t, tr, paths)
	for _, w := range busy {
		w.stop()
		w.wait()
	}
	for _, path := range paths {
		r := followWith(t, tr, collected, "nccl", "--seconds", "1", "--provider", path)
		r.checkBooks()
		r.checkCounts()
		if len(r.checkPairs()) == 0 {
			t.Errorf("nothing was timed through %s", path)
		}
	}
}

// waitForDuplicate waits until both paths were probed and one of them is not any
// more.
func waitForDuplicate(t *testing.T, tr *tracer.Tracer, paths []string) {
	t.Helper()
	var probed []string
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		probed = nil
		for _, probe := range snapshot(t, tr).Probes {
			if slices.Contains(paths, probe.Library) && probe.Functions[0] == "poll_cq" {
				probed = append(probed, probe.Library)
			}
		}
		if len(probed) == 1 && tracer.Duplicates(tr) == 1 {
			return
		}
	}
	t.Fatalf("probed are %q, %d are duplicates", probed, tracer.Duplicates(tr))
}
