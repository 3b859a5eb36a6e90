//go:build backends

package dashboards

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/launch"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

const (
	recording = "../../../config/prometheus/rdma-recording.yaml"
	alerts    = "../../../config/prometheus/rdma-alerts.yaml"

	simulated = "dash0"
	// jobSeconds is for how long the simulated job goes on: rates are those of a minute.
	jobSeconds = 30
)

// lacking are what a query names that a simulated device does not have.
var lacking = []string{
	"rdma_port_io_", "rdma_port_unattributed_", "rdma_port_pause_", "rdma_port_congestion_", "rdma_port_transport_",
	"rdma_port_errors_", "rdma_port_link_downs_", "rdma_port_corrected_", "rdma_port_discards_", "rdma_port_transmit_wait_",
	"rdma_port_request_errors_", "rdma_device_pcie_", "rdma_mr_",
}

// unwanted are what a query names that the simulated job has only when something
// goes wrong with it.
var unwanted = []string{`error_type!=""`, "rdma_sq_rejected_posts_", "rdma_rq_empty_", "rdma_port_up_"}

// Every query of every panel gives data: of the built collector beside a simulated
// job what a simulated device has, and of the metrics on file the rest.
func TestEveryPanelHasData(t *testing.T) {
	testbed.RequireRoot(t)
	testbed.KeepThread(t)
	prometheus := backend.StartPrometheus(t, recording, alerts)
	feed(t, prometheus)
	collector := runJob(t, prometheus)
	all := shipped(t)

	// What the collector tells of itself is under the name of this machine.
	machine, err := os.Hostname()
	require.NoError(t, err)
	here := map[string]string{"node": testbed.NodeName + "|" + machine, "device": ".*", "cause": ".*"}
	for _, uid := range []string{"rdma-node", "rdma-incident"} {
		for _, p := range all[uid].Panels {
			for _, of := range p.Targets {
				checkHere(t, prometheus, uid+": "+p.Title, of, here)
			}
		}
	}

	// The incident of the job is in the rules, under its cause.
	of := prometheus.Query(t, `host_device_cause:rdma_slow:share1m{host_name="`+testbed.NodeName+`"}`)
	assert.NotEmpty(t, of, "the job's device loses much of its time, and the rules do not say so")
	t.Logf("lost by the job: %v", of)

	require.Eventually(t, func() bool {
		return len(prometheus.Query(t, `ALERTS{alertstate="firing", alertname=~"RDMA.*"}`)) > 0
	}, 2*testbed.Patience, time.Second)
	queries := 0
	for uid, d := range all {
		for _, p := range d.Panels {
			for _, of := range p.Targets {
				queries++
				assert.True(t, has(t, prometheus, of, everything), "%s: %s has no data: %s", uid, p.Title, query(of.Expr, everything))
			}
		}
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				assertLists(t, prometheus, query(v.Definition, everything))
			}
		}
	}
	t.Logf("%d queries", queries)
	collector.Stop()
	require.NoError(t, collector.Wait())
}

// checkHere holds that a query gives data of the simulated job, unless that cannot
// have any.
func checkHere(t *testing.T, prometheus *backend.Prometheus, where string, of target, variables map[string]string) {
	t.Helper()
	names := func(part string) bool { return strings.Contains(of.Expr, part) }
	switch found := has(t, prometheus, of, variables); {
	case slices.ContainsFunc(lacking, names):
		assert.False(t, found, "%s has data of a simulated device: %s", where, of.Expr)
	case !slices.ContainsFunc(unwanted, names):
		assert.True(t, found, "%s has no data: %s", where, query(of.Expr, variables))
	}
}

// has is whether a query of a panel gives a number.
func has(t *testing.T, prometheus *backend.Prometheus, of target, variables map[string]string) bool {
	t.Helper()
	expression := query(of.Expr, variables)
	if of.Instant {
		return len(prometheus.Query(t, expression)) > 0
	}
	now := time.Now()
	value, warnings, err := prometheus.API.QueryRange(t.Context(), expression, v1.Range{Start: now.Add(-time.Minute), End: now, Step: 5 * time.Second})
	require.NoError(t, err, expression)
	require.Empty(t, warnings, expression)
	for _, series := range value.(model.Matrix) {
		if len(series.Histograms) > 0 {
			return true
		}
		for _, point := range series.Values {
			if !math.IsNaN(float64(point.Value)) {
				return true
			}
		}
	}
	return false
}

// assertLists holds that label_values(selector, label) gives values.
func assertLists(t *testing.T, prometheus *backend.Prometheus, definition string) {
	t.Helper()
	inner, ok := strings.CutPrefix(strings.TrimSuffix(definition, ")"), "label_values(")
	require.True(t, ok, definition)
	comma := strings.LastIndex(inner, ",")
	values, _, err := prometheus.API.LabelValues(t.Context(), strings.TrimSpace(inner[comma+1:]), []string{inner[:comma]}, time.Now().Add(-time.Minute), time.Now())
	require.NoError(t, err, definition)
	assert.NotEmpty(t, values, definition)
}

// runJob runs the built collector with config/prometheus.yaml beside a simulated job
// whose device is late now and then, until the job has ended, and returns the
// collector.
func runJob(t *testing.T, prometheus *backend.Prometheus) *testbed.Collector {
	t.Helper()
	root := testbed.Node(t)
	t.Setenv("GATEWAY", strings.TrimPrefix(prometheus.URL, "http://"))
	t.Setenv("RDMA_TOKEN", "token")
	collector := testbed.StartCollector(t, testbed.Directory(t, 0o755), configuration(t, root))

	// A library is probed when a program first uses it. This one goes before the job,
	// which is to be followed from its first request, and stays until it was met: the
	// collector is ready before it has attached what meets it.
	first := simulate(t, root, "perftest-lat", "--seconds", "0")
	require.NoError(t, collector.AwaitLine(t.Context(), "probing", 2*testbed.Patience))
	first.Stop()
	require.NoError(t, first.Wait())
	require.NoError(t, simulate(t, root, "nccl", "--seconds", fmt.Sprint(jobSeconds), "--spike-us", "5000", "--spikes-per-second", "10").Wait())
	return collector
}

// simulate starts a simulated workload.
func simulate(t *testing.T, root string, arguments ...string) *launch.Child {
	t.Helper()
	arguments = append([]string{"-n", "-15", testbed.Built(t, "verbsim", "verbsim")}, arguments...)
	arguments = append(arguments, "--device", simulated, "--sysroot", root, "--provider", testbed.Built(t, "libverbsim-rdmav34.so", "verbsim"))
	job, err := launch.Start(t.Context(), filepath.Join(t.TempDir(), "job.log"), "nice", arguments...)
	require.NoError(t, err)
	t.Cleanup(job.Stop)
	return job
}

// configuration is config/prometheus.yaml for a node that is made up and a
// Prometheus without TLS, quicker, and with spans that go nowhere.
func configuration(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile("../../../config/prometheus.yaml")
	require.NoError(t, err)
	changed := string(text)
	for old, with := range map[string]string{
		"https://":        "http://",
		"interval: 30000": "interval: 2000",
		"port: 8888":      "port: 0",
		"  rdma:\n\n": fmt.Sprintf("  rdma:\n    root_path: %s\n    threshold: 200us\n    collection_interval: 2s\n    routes: true\n"+
			"    max_thread_cpu_ratio: 1\n    max_agent_cpu_cores: 1\n    devices: {include: [{strict: %s}]}\n\n", root, simulated),
		"  rdma_radar:\n":    "  rdma_radar:\n    endpoint: \"localhost:0\"\n",
		"/run/otelcol-rdma":  t.TempDir(),
		"exporters:\n  otlp": "exporters:\n  debug: {}\n  otlp",
		"  pipelines:\n":     "  pipelines:\n    traces: {receivers: [rdma], exporters: [debug]}\n",
	} {
		require.Contains(t, changed, old)
		changed = strings.ReplaceAll(changed, old, with)
	}
	return changed
}
