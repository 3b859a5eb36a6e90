package testbed

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

// Collector is the built collector, running.
type Collector struct {
	*launch.Child
	log string
}

// StartCollector runs the built collector in a directory with a configuration, by
// way of another program if one is named, and returns when it is ready. It ends
// with the test at the latest, and well. The test must keep its thread.
func StartCollector(t *testing.T, directory, config string, by ...string) *Collector {
	t.Helper()
	path, binary := filepath.Join(directory, "config.yaml"), filepath.Join(directory, "otelcol-rdma")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o644))
	CopyProgram(t, Built(t, "otelcol-rdma", "build"), binary)
	command := append(slices.Clone(by), binary, "--config", path)
	log := filepath.Join(directory, "log")
	child, err := launch.Start(t.Context(), log, command[0], command[1:]...)
	require.NoError(t, err)
	t.Cleanup(func() {
		child.Stop()
		assert.NoError(t, child.Wait())
	})
	require.NoError(t, child.AwaitLine(t.Context(), "Everything is ready", Patience))
	return &Collector{Child: child, log: log}
}

// Log returns what the collector has printed so far.
func (c *Collector) Log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(c.log)
	require.NoError(t, err)
	return string(text)
}
