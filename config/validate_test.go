//go:build e2e

// Package config holds collector configurations. The test holds them against
// the built collector.
package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const collector = "../bin/otelcol-rdma"

// telemetry is for agent.yaml to be run with.
const telemetry = "gateway/agent-telemetry.yaml"

// run starts the built collector with no environment but what the
// configurations name, and returns all it printed.
func run(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), collector, arguments...)
	command.Env = []string{"GATEWAY=localhost:4317", "RDMA_TOKEN=token"}
	output, err := command.CombinedOutput()
	return string(output), err
}

// Who reports a fault names one version of both.
func TestCommandHasTheVersionOfTheCollector(t *testing.T) {
	output, err := run(t, "--version")
	require.NoError(t, err, output)
	said, err := exec.CommandContext(t.Context(), "../bin/rdmaradar", "--version").CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.Equal(t, strings.Replace(output, "otelcol-rdma", "rdmaradar", 1), string(said))
}

func TestCollectorListsReceiverForThreeSignals(t *testing.T) {
	output, err := run(t, "components")
	require.NoError(t, err, output)

	var listed struct {
		Receivers []struct {
			Name      string
			Stability map[string]string
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(output), &listed))
	for _, receiver := range listed.Receivers {
		if receiver.Name != "rdma" {
			continue
		}
		want := map[string]string{"traces": "Development", "metrics": "Development", "logs": "Development"}
		assert.Equal(t, want, receiver.Stability)
		return
	}
	t.Fatalf("no receiver named rdma in:\n%s", output)
}

func TestShippedConfigurationsAreValid(t *testing.T) {
	paths, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			output, err := run(t, "validate", "--config", path)
			assert.NoError(t, err, output)
		})
	}
}

// What is given besides another configuration is no whole one by itself.
func TestShippedAdditionsAreValid(t *testing.T) {
	for _, paths := range [][]string{
		{"agent.yaml", telemetry},
		{"tempo.yaml", "prometheus.yaml"},
		{"jaeger.yaml", "prometheus.yaml"},
	} {
		output, err := run(t, "validate", "--config", paths[0], "--config", paths[1])
		assert.NoError(t, err, "%v: %s", paths, output)
	}
}

// A configuration may ask for no other variable than these two: whoever rolls
// it out would not know to set it.
func TestShippedConfigurationsNameTwoVariablesAlone(t *testing.T) {
	paths, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	for _, path := range append(paths, telemetry) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, part := range strings.Split(string(text), "${")[1:] {
			name, _, _ := strings.Cut(part, "}")
			assert.Contains(t, []string{"env:GATEWAY", "env:RDMA_TOKEN"}, name, path)
		}
	}
}

func TestWrongConfigurationsAreRejected(t *testing.T) {
	tests := []struct {
		name, receiver string
		// says are parts of the sentence that a person needs to mend it.
		says []string
	}{
		{"threshold of no unit", "threshold: 50", []string{"threshold", "1µs", "write 50us"}},
		{"negative threshold", "threshold: -1us", []string{"threshold", "-1µs", "set it to"}},
		{"threshold is not a duration", "threshold: fast", []string{"threshold", "invalid duration"}},
		{"no interval", "collection_interval: 0s", []string{"collection_interval", "set it to"}},
		{"nothing exported", "max_exported_per_second: 0", []string{"max_exported_per_second", "set it to"}},
		{"half a span", "max_exported_per_second: 1.5", []string{"max_exported_per_second is 1.5", "whole number from 1 to 10000"}},
		{"not a number", "max_exported_per_second: .nan", []string{"max_exported_per_second is NaN", "whole number"}},
		{"more than there are", "max_series: 1e30", []string{"max_series is 1e+30", "whole number"}},
		{"negative series", "max_series: -1", []string{"max_series", "set it to"}},
		{"metric attribute of no metric", "metric_attributes: [thread.id]", []string{"metric_attributes", "thread.id", "rdma.qp.number"}},
		{"less memory than the maps take", "max_map_mib: 4", []string{"max_map_mib is 4", "set it to a value from 24"}},
		{"map memory in bytes", "max_map_mib: 33554432", []string{"max_map_mib", "set it to"}},
		{"unknown histogram", "histogram: linear", []string{"histogram", "linear", "exponential"}},
		{"unknown error mode", "error_mode: panic", []string{"error_mode", "panic", "ignore", "propagate"}},
		{"relative root", "root_path: host", []string{"root_path", "absolute"}},
		{"relative cache", "cache_directory: cache", []string{"cache_directory", "absolute"}},
		{"broken pattern", "devices: {include: [{regexp: '('}]}", []string{"devices", "include"}},
		{"misspelt key", "treshold: 50us", []string{"treshold"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(path, []byte(configurationWith(test.receiver)), 0o600))
			output, err := run(t, "validate", "--config", path)
			require.Error(t, err, "the collector accepted %s", test.receiver)
			for _, part := range test.says {
				assert.Contains(t, output, part)
			}
			assert.NotContains(t, output, "panic: ")
		})
	}
}

func configurationWith(receiver string) string {
	return `receivers:
  rdma:
    ` + receiver + `
exporters:
  debug:
service:
  pipelines:
    metrics:
      receivers: [rdma]
      exporters: [debug]
`
}
