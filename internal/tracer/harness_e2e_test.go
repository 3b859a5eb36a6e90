//go:build e2e

package tracer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
	"github.com/rdmaradar/rdmaradar/internal/verbsim"
)

// everything reports every completion: to pair each with the truth.
var everything = tracer.Config{EventBytes: 64 << 20, MaxMapBytes: 128 << 20}

func requireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: probes cannot be attached without it")
	}
}

func startTracer(t *testing.T, cfg tracer.Config) *tracer.Tracer {
	t.Helper()
	return startTracerLogging(t, cfg, testWriter{t})
}

// startTracerLogging starts a tracer whose warnings go to a writer.
func startTracerLogging(t *testing.T, cfg tracer.Config, log io.Writer) *tracer.Tracer {
	t.Helper()
	requireRoot(t)
	cfg = tracer.OnlyFilesUnder(cfg, private)
	cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	tr, err := tracer.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// private is a directory with copies of the simulator and of libibverbs: files
// of its own, on which nobody else hits the probes.
var private string

func TestMain(m *testing.M) {
	code, err := runPrivately(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runPrivately(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "tracer-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	private = dir
	files, err := filepath.Glob("/usr/lib/*/libibverbs.so.1")
	if err != nil || len(files) == 0 {
		return 0, errors.New("libibverbs.so.1 is not installed: scripts/setup.sh demo")
	}
	for _, name := range []string{"verbsim", "libverbsim-rdmav34.so", "libverbsim-rdmav34-nocet.so", mlx5Provider} {
		files = append(files, filepath.Join("../../bin", name))
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return 0, fmt.Errorf("%w: make verbsim builds the simulator", err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o700); err != nil {
			return 0, err
		}
	}
	for _, name := range []string{"libverbsim-rdmav34.so", "libverbsim-rdmav34-nocet.so"} {
		stop, err := keepMapped(name)
		if err != nil {
			return 0, err
		}
		defer stop()
	}
	return m.Run(), nil
}

// keepMapped runs a process that has the libraries mapped and does nothing: a
// tracer that starts finds them, as it finds those that are installed.
func keepMapped(provider string) (stop func(), err error) {
	ready := filepath.Join(private, provider+".ready")
	command := exec.Command(filepath.Join(private, "verbsim"), "perftest-lat", "--requests", "1",
		"--provider", filepath.Join(private, provider), "--ready-file", ready, "--wait-file", filepath.Join(private, "never"))
	command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+private)
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	for range 400 {
		if _, err := os.Stat(ready); err == nil {
			return stop, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	return nil, fmt.Errorf("%s was not ready within 4 s", provider)
}

func binary(_ *testing.T, name string) string { return filepath.Join(private, name) }

// simulator is a run of verbsim with the private libraries.
func simulator(ctx context.Context, t *testing.T, scenario string, flags ...string) *exec.Cmd {
	command := verbsim.Command(ctx, binary(t, "verbsim"), scenario, flags...)
	command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+private)
	return command
}

// collector gathers what the tracer delivers until it is closed.
type collector struct {
	mu          sync.Mutex
	completions []verbs.Completion
	stuck       []verbs.Stuck
	stuckAt     []time.Time
}

func collect(tr *tracer.Tracer) *collector {
	c := &collector{}
	go func() {
		for completion := range tr.Completions() {
			c.mu.Lock()
			c.completions = append(c.completions, completion)
			c.mu.Unlock()
		}
	}()
	go func() {
		for stuck := range tr.Stuck() {
			c.mu.Lock()
			c.stuck = append(c.stuck, stuck)
			c.stuckAt = append(c.stuckAt, time.Now())
			c.mu.Unlock()
		}
	}()
	return c
}

// settle waits until nothing new arrives.
func (c *collector) settle() []verbs.Completion {
	for last := -1; ; {
		c.mu.Lock()
		n := len(c.completions)
		c.mu.Unlock()
		if n == last {
			break
		}
		last = n
		time.Sleep(300 * time.Millisecond)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.completions
}

// workload is a running verbsim.
type workload struct {
	t                                    *testing.T
	command                              *exec.Cmd
	truthFile, recordsFile, ready, start string
	output                               bytes.Buffer
}

// startWorkload starts a scenario, which waits with its queues set up.
func startWorkload(t *testing.T, scenario string, flags ...string) *workload {
	t.Helper()
	dir := t.TempDir()
	w := &workload{
		t:           t,
		truthFile:   filepath.Join(dir, "truth.json"),
		recordsFile: filepath.Join(dir, "records.bin"),
		ready:       filepath.Join(dir, "ready"),
		start:       filepath.Join(dir, "start"),
	}
	flags = append([]string{
		"--truth", w.truthFile, "--truth-records", w.recordsFile,
		"--ready-file", w.ready, "--wait-file", w.start,
	}, flags...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	w.command = simulator(ctx, t, scenario, flags...)
	w.command.Stdout, w.command.Stderr = &w.output, &w.output
	if err := w.command.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *workload) waitReady() {
	w.t.Helper()
	waitForFile(w.t, w.ready, 20*time.Second)
}

func (w *workload) release() {
	w.t.Helper()
	if err := os.WriteFile(w.start, nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// wait lets the workload end and reads what it says happened. Its own checks
// must hold: being traced changes nothing.
func (w *workload) wait() (verbsim.Truth, []verbsim.Record) {
	w.t.Helper()
	if err := w.command.Wait(); err != nil {
		w.t.Fatalf("%v: %v\n%s", w.command.Args, err, w.output.String())
	}
	truth, err := verbsim.Read(w.truthFile)
	if err != nil {
		w.t.Fatal(err)
	}
	records, err := verbsim.ReadRecordsFile(w.recordsFile)
	if err != nil {
		w.t.Fatal(err)
	}
	return truth, records
}

func waitForFile(t *testing.T, path string, limit time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	t.Fatalf("%s did not appear within %v", path, limit)
}

// run is one scenario as both sides saw it.
type run struct {
	t             *testing.T
	truth         verbsim.Truth
	records       []verbsim.Record
	seen          []verbs.Completion
	collected     *collector
	before, after verbs.Snapshot
	started       time.Time
}

// simulate runs a scenario under the tracer from its start to its end.
func simulate(t *testing.T, tr *tracer.Tracer, scenario string, flags ...string) *run {
	t.Helper()
	return followWith(t, tr, collect(tr), scenario, flags...)
}

// followWith is for several runs under one tracer.
func followWith(t *testing.T, tr *tracer.Tracer, collected *collector, scenario string, flags ...string) *run {
	t.Helper()
	r := &run{t: t, collected: collected, before: snapshot(t, tr)}
	w := startWorkload(t, scenario, flags...)
	w.waitReady()
	r.started = time.Now()
	w.release()
	r.finish(tr, w)
	return r
}

// finish waits for the workload and for all that is told of it.
func (r *run) finish(tr *tracer.Tracer, w *workload) {
	r.t.Helper()
	r.truth, r.records = w.wait()
	time.Sleep(200 * time.Millisecond)
	r.seen = r.collected.settle()
	r.after = snapshot(r.t, tr)
}

func snapshot(t *testing.T, tr *tracer.Tracer) verbs.Snapshot {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
