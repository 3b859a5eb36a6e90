package rdmareceiver

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestReadClocks(t *testing.T) {
	// Each of the clocks is between two readings by others, however long they take.
	bounds := func() (wall, monotonic int64) {
		var now unix.Timespec
		require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
		return time.Now().UnixNano(), now.Nano()
	}
	wallBefore, monotonicBefore := bounds()
	read, err := readClocks()
	require.NoError(t, err)
	wallAfter, monotonicAfter := bounds()
	assert.GreaterOrEqual(t, read.monotonic, monotonicBefore)
	assert.LessOrEqual(t, read.monotonic, monotonicAfter)
	assert.GreaterOrEqual(t, read.real, wallBefore)
	assert.LessOrEqual(t, read.real, wallAfter)
}

func TestErrnoName(t *testing.T) {
	assert.Equal(t, "ENOMEM", errnoName(12))
	assert.Equal(t, "EINVAL", errnoName(22))
	assert.Equal(t, "errno_4000", errnoName(4000))
}

func TestOpenHost(t *testing.T) {
	h, err := openHost("/", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	name, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, name, h.facts.Name)
	self := verbs.ProcessID{TGID: uint32(os.Getpid()), Incarnation: 1}
	facts, err := h.processes.Facts(self)
	require.NoError(t, err)
	assert.Equal(t, filepath.Base(os.Args[0]), facts.Executable)
	assert.Equal(t, facts.Executable, h.executable(os.Getpid()))
	sample := h.watchDevices(nil, nil).Sample()
	assert.NotZero(t, sample.At)
}

func TestOpenHostOfAContainer(t *testing.T) {
	root := t.TempDir()
	_, err := openHost(root, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "root_path "+root)

	require.NoError(t, os.MkdirAll(filepath.Join(root, "proc", "self"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "etc"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc", "hostname"), []byte("gpu-node-7\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc", "machine-id"), []byte("abc123\n"), 0o600))
	h, err := openHost(root, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	assert.Equal(t, hostFacts{Name: "gpu-node-7", ID: "abc123"}, h.facts)
}
