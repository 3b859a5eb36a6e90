package fabric

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
)

func sampling(t *testing.T, tree string, takes func(string) bool) (*Sampler, string, *bytes.Buffer) {
	t.Helper()
	root := fabrictest.Tree(t, tree)
	reader := NewReader(root)
	log := &bytes.Buffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	return NewSampler(reader, NewCounterReader(reader, nil, nil, logger, time.Now), takes, logger), root, log
}

func TestSamplerFollowsHotPlug(t *testing.T) {
	sampler, root, log := sampling(t, fabrictest.SRIOV, nil)
	first := sampler.Sample()
	require.Len(t, first.Devices, 2)
	require.NotNil(t, first.Devices[0].PCI)

	link := filepath.Join(root, "class/infiniband/mlx5_1")
	target, err := os.Readlink(link)
	require.NoError(t, err)
	require.NoError(t, os.Remove(link))
	gone := sampler.Sample()
	require.Len(t, gone.Devices, 1)
	for _, r := range gone.Readings {
		assert.Equal(t, "mlx5_0", r.Device)
	}

	require.NoError(t, os.Symlink(target, link))
	back := sampler.Sample()
	require.Len(t, back.Devices, 2)
	assert.Equal(t, first.Devices[1].PCI, back.Devices[1].PCI)
	assert.Empty(t, log.String())
}

// Configuration space is read when a device appears; its links are read always.
func TestSamplerReadsLinksAgain(t *testing.T) {
	sampler, root, _ := sampling(t, fabrictest.Bond, nil)
	require.NotNil(t, sampler.Sample().Devices[0].PCI.Control)
	require.NoError(t, os.Remove(filepath.Join(root, "bus/pci/devices/0000:3b:00.0/config")))
	fabrictest.Add(t, root, "bus/pci/devices/0000:3b:00.0/current_link_width = 8")
	pci := sampler.Sample().Devices[0].PCI
	assert.NotNil(t, pci.Control)
	assert.Equal(t, 8, pci.Link.Lanes)
}

func TestSamplerTakesSome(t *testing.T) {
	sampler, _, _ := sampling(t, fabrictest.SRIOV, func(name string) bool { return name == "mlx5_1" })
	sample := sampler.Sample()
	require.Len(t, sample.Devices, 1)
	assert.Equal(t, "mlx5_1", sample.Devices[0].Name)
}

func TestSamplerSaysAFailureOnce(t *testing.T) {
	sampler, root, log := sampling(t, fabrictest.SRIOV, nil)
	fabrictest.Add(t, root, "class/infiniband/mlx5_0/ports/1/rate = fast")
	for range 3 {
		require.Len(t, sampler.Sample().Devices, 2, "what can be read is there")
	}
	assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")), log.String())
}

// A sample of eight NICs with 38 counters each, from files of a temporary
// directory: what the reads cost beside the work of driver and firmware.
func BenchmarkSample(b *testing.B) {
	reader := NewReader(fabrictest.Tree(b, fabrictest.TwoSockets))
	logger := slog.New(slog.DiscardHandler)
	now := time.Unix(1000, 0)
	counters := NewCounterReader(reader, nil, nil, logger, func() time.Time {
		now = now.Add(time.Minute)
		return now
	})
	sampler := NewSampler(reader, counters, nil, logger)
	for b.Loop() {
		if sample := sampler.Sample(); len(sample.Readings) == 0 {
			b.Fatal("no counter was read")
		}
	}
}
