//go:build backends

package fleet

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

const pollInterval = 100 * time.Millisecond

// gatewayConfig sends on in the order of arrival: agents send faster here than time
// goes by, and what overtook a later collection of its node would be out of order.
const gatewayConfig = `receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:%d"}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 2048, spike_limit_mib: 512}
  batch:
exporters:
  otlp_http: {endpoint: "%s", sending_queue: {num_consumers: 1}}
  debug:
service:
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [debug]}
    logs: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [debug]}
    metrics: {receivers: [otlp], processors: [memory_limiter, batch], exporters: [otlp_http]}
  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: localhost, port: %d}}}}]
`

// gateway is the built collector, between agents and Prometheus.
type gateway struct {
	*testbed.Collector
	// endpoint takes OTLP/gRPC, metrics has what the collector tells of itself.
	endpoint, metrics string
}

func startGateway(t *testing.T, to *backend.Prometheus) *gateway {
	t.Helper()
	port, own := testbed.FreePort(t), testbed.FreePort(t)
	return &gateway{
		Collector: testbed.StartCollector(t, t.TempDir(), fmt.Sprintf(gatewayConfig, port, to.OTLP, own)),
		endpoint:  fmt.Sprintf("127.0.0.1:%d", port),
		metrics:   fmt.Sprintf("http://localhost:%d/metrics", own),
	}
}

// total is the sum of a metric that a program tells of itself.
func total(t *testing.T, url, name string) float64 {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	all, err := otlp.ReadPrometheus(response.Body)
	require.NoError(t, err)
	return all.Total(otlp.Match{Metric: name})
}

// awaitWhole waits until the gateway has handed on all points, as long as it gets on with
// them, and checks that neither it nor Prometheus dropped one.
func (g *gateway) awaitWhole(t *testing.T, to *backend.Prometheus, points int) {
	t.Helper()
	g.awaitSent(t, "otelcol_exporter_sent_metric_points", points)
	for _, name := range []string{
		"prometheus_tsdb_out_of_order_samples_total", "prometheus_tsdb_out_of_bound_samples_total", "prometheus_tsdb_too_old_samples_total",
	} {
		assert.Zero(t, total(t, to.URL+"/metrics", name), name)
	}
}

// awaitSent waits until the gateway has handed on so many items, as long as it gets on
// with them.
func (g *gateway) awaitSent(t *testing.T, name string, items int) {
	t.Helper()
	handed := func() int { return int(total(t, g.metrics, name)) }
	before, deadline := 0, time.Now().Add(testbed.Patience)
	for now := 0; now < items && time.Now().Before(deadline); time.Sleep(pollInterval) {
		if now = handed(); now > before {
			before, deadline = now, time.Now().Add(testbed.Patience)
		}
	}
	assert.Equal(t, items, handed(), "%s; the log of the gateway:\n%s", name, g.Log(t))
}

// use is what a process took: seconds of a CPU so far, and bytes of memory now.
type use struct {
	cpu    float64
	memory int
}

func useOf(t *testing.T, pid int) use {
	t.Helper()
	process, err := procfs.NewProc(pid)
	require.NoError(t, err)
	stat, err := process.Stat()
	require.NoError(t, err)
	return use{cpu: stat.CPUTime(), memory: stat.ResidentMemory()}
}
