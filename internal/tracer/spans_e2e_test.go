//go:build e2e

package tracer_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// A span that another tool says the posting thread is in comes with the
// completion.
func TestSpanOfThePostingThread(t *testing.T) {
	beside(t)
	root := t.TempDir()
	spans := pinSpans(t, root)
	if err := os.Symlink("/proc", filepath.Join(root, "proc")); err != nil {
		t.Fatal(err)
	}
	cfg := everything
	cfg.Root = root
	tr := startTracer(t, cfg)
	r := &run{t: t, collected: collect(tr)}
	w := startWorkload(t, "perftest-lat", "--requests", "2000")
	w.waitReady()
	time.Sleep(200 * time.Millisecond)
	pid := uint64(w.command.Process.Pid)
	span := [24]byte{0: 0xaa, 15: 0xbb, 16: 0xcc, 23: 0xdd}
	if err := spans.Put(pid<<32|pid, span); err != nil {
		t.Fatal(err)
	}
	w.release()
	r.truth, r.records = w.wait()
	r.settle(tr)
	linked := 0
	for i := range r.seen {
		s := r.seen[i].Span
		if s.TraceID == [16]byte{0: 0xaa, 15: 0xbb} && s.SpanID == [8]byte{0: 0xcc, 7: 0xdd} {
			linked++
		} else if s.SpanID != [8]byte{} {
			t.Fatalf("a span that nobody was in: %x", s)
		}
	}
	if linked == 0 || linked != len(r.seen) {
		t.Errorf("%d of %d completions have the span", linked, len(r.seen))
	}
}

// pinSpans makes the map as other tools do, on a BPF file system below root.
func pinSpans(t *testing.T, root string) *ebpf.Map {
	t.Helper()
	mount := filepath.Join(root, "sys/fs/bpf")
	if err := os.MkdirAll(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("bpf", mount, "bpf", 0, ""); err != nil {
		t.Skipf("mounting a BPF file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	spans, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.LRUHash, KeySize: 8, ValueSize: 24, MaxEntries: 1024})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spans.Close() })
	if err := os.MkdirAll(filepath.Join(mount, "otel"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := spans.Pin(filepath.Join(mount, "otel/traces_ctx_v1")); err != nil {
		t.Fatal(err)
	}
	return spans
}
