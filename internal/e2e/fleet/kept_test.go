//go:build backends

package fleet

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

const (
	// blockTime is what Prometheus writes a block of.
	blockTime = 2 * time.Hour
	// keptNodes are of one job and share what an index has once.
	keptNodes = 2
)

// What Prometheus keeps of a day is as much as the document says, by the block that it
// makes of two hours. Larger blocks, into which these are merged, are a little smaller.
func TestPrometheusKeepsAsMuchAsDocumented(t *testing.T) {
	testbed.KeepThread(t)
	want := readDocument(t)
	prometheus := backend.StartPrometheus(t)
	gateway := startGateway(t, prometheus)
	agents := startAgents(t, keptNodes, gateway.endpoint)

	collections := int(blockTime / interval)
	begin := time.Now().Add(-blockTime - interval)
	for _, a := range agents {
		a.node.begin(begin)
	}
	require.NoError(t, sendAll(t.Context(), agents, begin, collections))
	gateway.awaitWhole(t, prometheus, keptNodes*collections*agents[0].node.metrics.DataPointCount())

	snapshot, err := prometheus.API.Snapshot(t.Context(), false)
	require.NoError(t, err)
	blocks, err := filepath.Glob(filepath.Join(prometheus.Data, "snapshots", snapshot.Name, "*", "meta.json"))
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	block := filepath.Dir(blocks[0])
	assert.Equal(t, keptNodes*collections*int(want.series), samplesOf(t, blocks[0]), "samples in the block")

	size := sizeOf(t, block)
	perDay := float64(size) * float64(24*time.Hour/blockTime) / keptNodes
	assert.InEpsilon(t, want.kept, perDay, 0.25, "bytes of a day")
	t.Logf("a node and day: %.1f MB, of which the index is %.1f MB; %.2f bytes a sample; the write-ahead log of two hours has %.1f MB of a node",
		perDay/1e6, float64(sizeOf(t, filepath.Join(block, "index"))*12)/keptNodes/1e6,
		float64(size)/float64(samplesOf(t, blocks[0])), float64(sizeOf(t, filepath.Join(prometheus.Data, "wal")))/keptNodes/1e6)
}

// samplesOf is how many samples a block has, by its description of itself.
func samplesOf(t *testing.T, path string) int {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var meta struct{ Stats struct{ NumSamples int } }
	require.NoError(t, json.Unmarshal(content, &meta))
	return meta.Stats.NumSamples
}

// sizeOf is that of a file or of all files in a directory, in bytes.
func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	var size int64
	require.NoError(t, filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		size += info.Size()
		return err
	}))
	return size
}
