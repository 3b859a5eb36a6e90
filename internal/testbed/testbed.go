// Package testbed is what the end-to-end tests of several packages share: programs
// that make has built, a host made up beside this one, and the built collector.
package testbed

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/testprogram"
)

// Patience is how long what takes seconds at most is waited for: on a busy machine
// that is no sign of a fault.
const Patience = time.Minute

// RequireRoot fails a test that needs root and does not have it.
func RequireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root: probes cannot be attached without it")
	}
}

// Built returns the path of a program or library in bin, which the target of make
// builds.
func Built(t *testing.T, name, target string) string {
	t.Helper()
	path := filepath.Join(repository(t), "bin", name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is missing: make %s builds it", path, target)
	}
	return path
}

// File returns the path of a file of the repository.
func File(t *testing.T, path string) string {
	t.Helper()
	return filepath.Join(repository(t), path)
}

// repository is the root of the repository, above the directory in which the tests
// of a package run.
func repository(t *testing.T) string {
	t.Helper()
	directory, err := os.Getwd()
	require.NoError(t, err)
	for ; directory != "/"; directory = filepath.Dir(directory) {
		if _, err := os.Stat(filepath.Join(directory, "builder-config.yaml")); err == nil {
			return directory
		}
	}
	t.Fatal("there is no builder-config.yaml above the directory of this test")
	return ""
}

// Directory is a new one with the permissions given, such as 0o755: those of the
// testing package are closed to other users.
func Directory(t *testing.T, permissions fs.FileMode) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "testbed")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	require.NoError(t, os.Chmod(directory, permissions))
	return directory
}

// CopyProgram copies a program so that it can be run at once.
func CopyProgram(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, testprogram.Write(to, content, 0o755))
}

// FreePort returns a TCP port of localhost that nobody listens on.
func FreePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// KeepThread keeps the test on its thread: what it starts with the package launch
// lives no longer than that.
func KeepThread(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
}
