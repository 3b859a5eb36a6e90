//go:build e2e

package rdmareceiver_test

import (
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// A pipeline that refuses everything stalls nothing: every completion is still
// seen, and what was not delivered is counted.
func TestRefusingPipelineStallsNothing(t *testing.T) {
	traces(t)
	closed := strconv.Itoa(testbed.FreePort(t))
	c := startCollector(t, `receivers:
  rdma:
    threshold: 1us
    collection_interval: 1s
    max_exported_per_second: 1000
    max_thread_cpu_ratio: 1
    max_agent_cpu_cores: 16
    error_mode: propagate
exporters:
  otlp_grpc:
    endpoint: localhost:`+closed+`
    tls: {insecure: true}
    timeout: 1s
    sending_queue: {enabled: false}
    retry_on_failure: {enabled: false}
service:
  pipelines:
    traces: {receivers: [rdma], exporters: [otlp_grpc]}
    metrics: {receivers: [rdma], exporters: [otlp_grpc]}
    logs: {receivers: [rdma], exporters: [otlp_grpc]}
`, nil)
	c.waitForLog("Everything is ready", testbed.Patience)
	// The first workload makes the provider's library known.
	startWorkload(t, "rate", "--requests", "1000", "--rate", "5000", "--start-delay-ms", "400").end()
	before := c.own("otelcol_rdma_completions_seen", "")
	w := startWorkload(t, "rate", "--seconds", "0", "--rate", "20000")
	seen := func() float64 { return c.own("otelcol_rdma_completions_seen", "") - before }
	c.waitUntil("many completions are counted", testbed.Patience, func() bool { return seen() > 50_000 })
	truth := w.end()
	c.waitUntil("all completions are counted", testbed.Patience, func() bool { return seen() >= float64(truth.Counts.Completions) })
	c.waitUntil("refused spans are counted", testbed.Patience, func() bool {
		return c.own("otelcol_rdma_events", `outcome="refused"`) > 0
	})
	c.waitUntil("metrics that were not taken are counted", testbed.Patience, func() bool {
		return c.own("otelcol_rdma_metric_batches_dropped", "") > 0
	})
	assert.Zero(t, c.own("otelcol_rdma_events", `outcome="exported"`))
	assert.Zero(t, c.own("otelcol_rdma_losses", `reason="consumer_too_slow"`))
	held := c.kernelObjects()
	c.signal(syscall.SIGTERM)
	assert.Zero(t, c.exitCode(endLimit))
	c.checkNothingLeft(held)
}
