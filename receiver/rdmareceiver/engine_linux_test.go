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

	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
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

// A bound that passes the check is enough for a machine with 256 processors.
func TestLeastMapMemoryIsEnough(t *testing.T) {
	least, err := tracer.LeastMapBytes(256)
	require.NoError(t, err)
	assert.EqualValues(t, minMapMiB, (least+1<<20-1)>>20, "%d bytes", least)
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
	own, err := process.NewReader("").Facts(os.Getpid())
	require.NoError(t, err)
	// A tick of the start time is 10 ms.
	self := verbs.ProcessID{TGID: uint32(os.Getpid()), Incarnation: own.StartTicks*10_000_000 + 1}
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

// TestReadHostFactsOfLinks: links of the host are followed on the host, absolute
// ones and those that climb too. The files that they name outside of it stand for
// those of the collector's container.
func TestReadHostFactsOfLinks(t *testing.T) {
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "name"), []byte("the-pod\n"), 0o600))
	for name, link := range map[string]string{
		"absolute": filepath.Join(outside, "name"),
		"climbing": "../../../../../../../.." + filepath.Join(outside, "name"),
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			inside := filepath.Join(root, outside)
			require.NoError(t, os.MkdirAll(inside, 0o755))
			require.NoError(t, os.MkdirAll(filepath.Join(root, "etc"), 0o755))
			require.NoError(t, os.Symlink(link, filepath.Join(root, "etc/hostname")))
			require.NoError(t, os.Symlink(link, filepath.Join(root, "etc/machine-id")))

			dangling := readHostFacts(root, slog.New(slog.DiscardHandler))
			assert.Equal(t, hostFacts{}, dangling, "no such file on the host")

			require.NoError(t, os.WriteFile(filepath.Join(inside, "name"), []byte("gpu-node-7\n"), 0o600))
			facts := readHostFacts(root, slog.New(slog.DiscardHandler))
			assert.Equal(t, hostFacts{Name: "gpu-node-7", ID: "gpu-node-7"}, facts)
		})
	}
}

// TestReadHostFactsWithoutFile: the name of the collector's container is not the
// host's, unless the two share it.
func TestReadHostFactsWithoutFile(t *testing.T) {
	own, err := os.Readlink("/proc/self/ns/uts")
	require.NoError(t, err)
	name, err := os.Hostname()
	require.NoError(t, err)
	for uts, want := range map[string]string{own: name, "uts:[1]": ""} {
		root := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(root, "proc/1/ns"), 0o755))
		require.NoError(t, os.Symlink(uts, filepath.Join(root, "proc/1/ns/uts")))
		assert.Equal(t, want, readHostFacts(root, slog.New(slog.DiscardHandler)).Name, uts)
	}
}
