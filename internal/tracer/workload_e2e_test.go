//go:build e2e

package tracer_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbsim"
)

// simulator is a run of verbsim with the libraries of a directory.
func simulator(ctx context.Context, dir, scenario string, flags ...string) *exec.Cmd {
	command := verbsim.Command(ctx, filepath.Join(dir, "verbsim"), scenario, flags...)
	command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir)
	tie(command)
	return command
}

// tie has the kernel kill the process of a command when that of the tests ends,
// however it does. The signal is tied to the thread that starts the process; the
// Go runtime keeps its threads.
func tie(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// workload is a running verbsim.
type workload struct {
	t                                    *testing.T
	command                              *exec.Cmd
	truthFile, recordsFile, ready, start string
	output                               bytes.Buffer
	// goes says that the test has a CPU for it.
	goes bool
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
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	w.command = simulator(ctx, homeOf(t).dir, scenario, flags...)
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
	homeOf(w.t).begin()
	w.goes = true
	if err := os.WriteFile(w.start, nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// waitFor lets the workload go on until there was enough of it, but not for longer
// than the limit: what is missing then is told by who looks for it.
func (w *workload) waitFor(limit time.Duration, enough func() bool) {
	for deadline := time.Now().Add(limit); !enough() && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
}

// stop asks the workload to drain its queues and check its books.
func (w *workload) stop() {
	w.t.Helper()
	if err := w.command.Process.Signal(syscall.SIGTERM); err != nil {
		w.t.Fatal(err)
	}
}

// wait lets the workload end and reads what it says happened. Its own checks
// must hold: being traced changes nothing.
func (w *workload) wait() (verbsim.Truth, []verbsim.Record) {
	w.t.Helper()
	if err := w.ended(); err != nil {
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

// kill ends the workload, whatever it does.
func (w *workload) kill() {
	_ = w.command.Process.Kill()
	_ = w.ended()
}

// ended waits for the end, and gives the CPU back.
func (w *workload) ended() error {
	err := w.command.Wait()
	if w.goes {
		w.goes = false
		homeOf(w.t).end()
	}
	return err
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
