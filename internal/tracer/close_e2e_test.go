//go:build e2e

package tracer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// hangingHost is a root directory with a process whose maps nobody can read to
// the end, until the returned function is called.
func hangingHost(t *testing.T) (root string, release func()) {
	t.Helper()
	root = t.TempDir()
	dir := filepath.Join(root, "proc", "1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	maps := filepath.Join(dir, "maps")
	if err := syscall.Mkfifo(maps, 0o600); err != nil {
		t.Fatal(err)
	}
	release = func() {
		// Opened for reading too it does not wait for a reader that never came.
		writer, err := os.OpenFile(maps, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Error(err)
		}
	}
	return root, release
}

// What the kernel does not give back neither keeps tracing from its start nor
// probes in place after the end.
func TestCloseDoesNotWaitForWhatHangs(t *testing.T) {
	requireRoot(t)
	t.Parallel()
	root, release := hangingHost(t)
	var log bytes.Buffer
	tr, err := tracer.Start(t.Context(), tracer.Config{Root: root, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	err = tr.Close()
	if n := strings.Count(log.String(), "/proc/1/maps"); n != 1 {
		t.Errorf("the log tells %d times of what hangs:\n%s", n, log.String())
	}
	if err == nil {
		t.Fatal("Close did not tell of what hangs")
	}
	t.Log(err)
	if _, open := <-tr.Completions(); open {
		t.Error("the completions go on")
	}
	if n := tracer.Links(tr); n != 0 {
		t.Errorf("%d links are left", n)
	}
	if tracer.Freed(tr) {
		t.Error("the maps are freed while somebody may use them")
	}
	release()
	for range 1000 {
		if tracer.Freed(tr) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the maps are not freed")
}

func TestStartEndsWithItsContext(t *testing.T) {
	requireRoot(t)
	t.Parallel()
	root, release := hangingHost(t)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := tracer.Start(ctx, tracer.Config{Root: root}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the start ended with %v", err)
	}
}

// Firmware that hangs when it is asked for the rate holds up nothing.
func TestRateThatNobodyTells(t *testing.T) {
	beside(t)
	answer := make(chan struct{})
	defer close(answer)
	tr := startTracer(t, tracer.Config{Threshold: 50 * time.Microsecond, Rate: func(string) (float64, bool) {
		<-answer
		return 0, false
	}})
	r := simulate(t, tr, "perftest-lat", "--requests", "100")
	r.checkBooks()
	if r.after.WQEs.Delivered == 0 {
		t.Error("nothing was measured")
	}
}
