package tracer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// A thread may give itself any name.
func TestThreadNameIsClean(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "7", "task", "8")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "comm"), []byte("red\x1b[31m\xff\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tr := &Tracer{threads: process.NewReader(root)}
	if got, want := tr.threadName(verbs.ProcessID{TGID: 7}, 8), "red\uFFFD[31m\uFFFD"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := tr.threadName(verbs.ProcessID{TGID: 7}, 9); got != "" {
		t.Errorf("a thread that has ended is named %q", got)
	}
}
