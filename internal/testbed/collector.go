package testbed

import (
	"fmt"
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
	return StartCollectorOf(t, directory, []string{config}, by...)
}

// StartCollectorOf is StartCollector with several configurations, one besides the other.
func StartCollectorOf(t *testing.T, directory string, configs []string, by ...string) *Collector {
	t.Helper()
	binary := filepath.Join(directory, "otelcol-rdma")
	CopyProgram(t, Built(t, "otelcol-rdma", "build"), binary)
	command := append(slices.Clone(by), binary)
	for i, config := range configs {
		path := filepath.Join(directory, fmt.Sprintf("config%d.yaml", i))
		require.NoError(t, os.WriteFile(path, []byte(config), 0o644))
		command = append(command, "--config", path)
	}
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
