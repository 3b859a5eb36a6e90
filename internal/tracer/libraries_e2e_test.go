//go:build e2e

package tracer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/testprogram"
)

// homes are those of the tests, by their names.
var homes sync.Map

// home is what a test has for itself.
type home struct {
	// dir has the libraries that the test uses and traces.
	dir string
	// running are its workloads that go.
	running atomic.Int32
}

// cpus are taken by tests with workloads that go. These poll without a pause: with
// more of them than CPUs each would stand still for moments that are none of what is
// tested, and the kernel would take longer over probes that go. What tests do besides,
// most of all have programs verified and check what was told, goes on meanwhile.
var cpus = make(chan struct{}, runtime.NumCPU())

// begin waits for a CPU, unless the test has one.
func (h *home) begin() {
	if h.running.Add(1) == 1 {
		cpus <- struct{}{}
	}
}

func (h *home) end() {
	if h.running.Add(-1) == 0 {
		<-cpus
	}
}

// beside gives a test, or a part of one, libraries of its own: it may run beside
// others, as many as go test -parallel says.
func beside(t *testing.T) {
	t.Helper()
	requireRoot(t)
	t.Parallel()
	dir, leave, err := newHome()
	if err != nil {
		t.Fatal(err)
	}
	h := &home{dir: dir}
	homes.Store(t.Name(), h)
	t.Cleanup(func() {
		homes.Delete(t.Name())
		if h.running.Load() > 0 {
			<-cpus
		}
		leave()
	})
}

// homeOf is that of the test, or of the one that it is a part of.
func homeOf(t *testing.T) *home {
	t.Helper()
	for name := t.Name(); name != "."; name = path.Dir(name) {
		if h, ok := homes.Load(name); ok {
			return h.(*home)
		}
	}
	t.Fatal("a test that traces begins with beside")
	return nil
}

func binary(t *testing.T, name string) string { return filepath.Join(homeOf(t).dir, name) }

// newHome makes a directory with copies of the simulator and of libibverbs: files
// of its own, on which nobody else hits the probes.
func newHome() (dir string, leave func(), err error) {
	dir, err = os.MkdirTemp("", "tracer-e2e-")
	if err != nil {
		return "", nil, err
	}
	var stops []func()
	leave = func() {
		for _, stop := range stops {
			stop()
		}
		_ = os.RemoveAll(dir)
	}
	if err := copySimulator(dir); err != nil {
		leave()
		return "", nil, err
	}
	for _, name := range providers {
		stop, err := keepMapped(dir, name)
		if err != nil {
			leave()
			return "", nil, err
		}
		stops = append(stops, stop)
	}
	return dir, leave, nil
}

func copySimulator(dir string) error {
	files, err := filepath.Glob("/usr/lib/*/libibverbs.so.1")
	if err != nil || len(files) == 0 {
		return errors.New("libibverbs.so.1 is not installed: scripts/setup.sh demo")
	}
	for _, name := range append([]string{"verbsim", mlx5Provider}, providers...) {
		files = append(files, filepath.Join("../../bin", name))
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%w: make verbsim builds the simulator", err)
		}
		if err := testprogram.Write(filepath.Join(dir, filepath.Base(file)), content, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// keepMapped runs a process that has the libraries of a directory mapped and does
// nothing: a tracer that starts finds them, as it finds those that are installed.
func keepMapped(dir, provider string) (stop func(), err error) {
	ready := filepath.Join(dir, provider+".ready")
	command := simulator(context.Background(), dir, "perftest-lat", "--requests", "1",
		"--provider", filepath.Join(dir, provider), "--ready-file", ready, "--wait-file", filepath.Join(dir, "never"))
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	for range 2000 {
		if _, err := os.Stat(ready); err == nil {
			// Stopped it takes no time from those that are observed.
			if err := command.Process.Signal(syscall.SIGSTOP); err != nil {
				stop()
				return nil, err
			}
			return stop, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	return nil, fmt.Errorf("%s was not ready within 20 s", provider)
}
