//go:build e2e

package rdmareceiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// onSocket shows the collector to who may open a file.
const onSocket = `receivers:
  rdma:
    collection_interval: 1s
    max_thread_cpu_ratio: 1
    max_agent_cpu_cores: 16
exporters:
  debug:
extensions:
  rdma_radar: {endpoint: "localhost:0", socket: "{dir}/radar.sock"}
service:
  pipelines:
    traces: {receivers: [rdma], exporters: [debug]}
    metrics: {receivers: [rdma], exporters: [debug]}
`

// shownNode is what `rdmaradar top --once --output json` prints, as far as it is asked for.
type shownNode struct {
	Tracing   struct{ Phase string }
	Incidents []struct {
		Open            bool
		Subject, Device string
	}
	Queues []struct {
		PID    int
		Device string
		QP     uint32
		Slow   uint64
		State  string
		Why    string
	}
}

// rdmaradar runs the companion command on the socket of the collector.
func (c *collector) rdmaradar(arguments ...string) (stdout, stderr string, status int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, testbed.Built(c.t, "rdmaradar", "build"), append(arguments, "--socket", filepath.Join(c.dir, "radar.sock"))...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &out, &errs, tied(nil)
	if err := cmd.Run(); err != nil {
		exit := (*exec.ExitError)(nil)
		require.True(c.t, errors.As(err, &exit), "%v", err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Whoever is at the node sees which queue is slow and why, without a token, and what the
// collector itself may and does.
func TestCommandShowsASlowQueue(t *testing.T) {
	traces(t)
	const device, spikeMicroseconds = "radar1", 20_000
	c := startCollector(t, onSocket, nil)
	c.waitForLog("Everything is ready", testbed.Patience)
	// The wr_ids are those of a counter: queues that were not seen from their start align.
	job := startWorkload(t, "rate", "--device", device, "--rate", "20000", "--qps", "4", "--seconds", "0",
		"--spike-us", fmt.Sprint(spikeMicroseconds), "--spikes-per-second", "3")

	var node shownNode
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what top showed last: %+v", node)
		}
	})
	c.waitUntil("an incident is open on the device", testbed.Patience, func() bool {
		text, said, _ := c.rdmaradar("top", "--once", "--output", "json", "--filter", device)
		require.NoError(t, json.Unmarshal([]byte(text), &node), said)
		for _, incident := range node.Incidents {
			if incident.Open && incident.Device == device {
				return len(node.Queues) > 0 && node.Queues[0].Slow > 0 && node.Queues[0].Why != ""
			}
		}
		return false
	})
	table, _, status := c.rdmaradar("top", "--once")
	assert.Zero(t, status)
	report, said, status := c.rdmaradar("doctor", "--output", "json")
	truth := job.end()

	require.NotEmpty(t, truth.Spikes)
	worst := node.Queues[0]
	assert.Equal(t, truth.Spikes[0].QPNumber, worst.QP, "the queue with the spikes is on top")
	assert.Equal(t, truth.PID, worst.PID)
	assert.Equal(t, device, worst.Device)
	assert.Contains(t, table, fmt.Sprintf("0x%x", worst.QP))
	assert.Contains(t, table, "Cause: ")
	assert.Contains(t, table, " on "+device)

	assert.NotEqual(t, 2, status, "what traces can be observed: %s%s", report, said)
	assert.Contains(t, report, fmt.Sprintf("the collector (pid %d) has CAP_BPF", c.command.Process.Pid))
	assert.Contains(t, report, "the collector traces, so that probes are not tried once more")
	assert.True(t, strings.Contains(report, "the collector traces ") && strings.Contains(report, " queue"), report)
	health, _, status := c.rdmaradar("doctor", "--node-health")
	assert.Contains(t, health, "traced")
	assert.Contains(t, []int{0, 1}, status)
}
