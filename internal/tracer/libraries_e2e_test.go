//go:build e2e

package tracer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/testprogram"
)

// private has the libraries of the tests that ask for none of their own.
var private string

// homes are the directories of tests with libraries of their own, by their names.
var homes sync.Map

func TestMain(m *testing.M) {
	code, err := runPrivately(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runPrivately(m *testing.M) (int, error) {
	dir, leave, err := newHome()
	if err != nil {
		return 0, err
	}
	defer leave()
	private = dir
	return m.Run(), nil
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
	homes.Store(t.Name(), dir)
	t.Cleanup(func() {
		homes.Delete(t.Name())
		leave()
	})
}

// home is the directory with the libraries that the test uses and traces.
func home(t *testing.T) string {
	for name := t.Name(); name != "."; name = path.Dir(name) {
		if dir, ok := homes.Load(name); ok {
			return dir.(string)
		}
	}
	return private
}

func binary(t *testing.T, name string) string { return filepath.Join(home(t), name) }

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
			return stop, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	return nil, fmt.Errorf("%s was not ready within 20 s", provider)
}
