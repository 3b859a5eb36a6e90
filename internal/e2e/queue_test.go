//go:build backends

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// withQueue keeps on disk what its one exporter cannot deliver yet.
const withQueue = `exporters:
  file: {path: "{dir}/out.jsonl", append: true, flush_interval: 100ms}
  otlp_grpc:
    endpoint: "%s"
    tls: {insecure: true}
    timeout: 2s
    retry_on_failure: {initial_interval: 100ms, max_interval: 500ms, max_elapsed_time: 0}
    sending_queue: {storage: file_storage, %s}
extensions:
  file_storage: {directory: "{dir}/queue", create_directory: true}
service:
  extensions: [file_storage]
  pipelines:
    traces: {receivers: [rdma], exporters: [otlp_grpc, file]}
`

const (
	// largeQueue is that of config/agent.yaml.
	largeQueue = "sizer: bytes, queue_size: 67108864, batch: {flush_timeout: 1s, sizer: bytes, min_size: 1048576, max_size: 2097152}"
	tinyQueue  = "sizer: requests, queue_size: 2, num_consumers: 1"
)

// Nothing is lost while Jaeger is away and the collector is started anew meanwhile.
func TestQueueOutlivesBackendAndCollector(t *testing.T) {
	a := newAgent(t, "")
	jaeger := backend.StartJaeger(t)
	a.rest = fmt.Sprintf(withQueue, jaeger.GRPC, largeQueue)
	a.start()
	spikes(t, a)
	first := emitted(t, a)
	waitUntil(t, "Jaeger has the first spikes", func() bool { return len(stored(t, jaeger)) >= len(first) })
	assert.Equal(t, first, stored(t, jaeger))

	jaeger.Stop()
	require.NoError(t, jaeger.Wait())
	spikes(t, a)
	waitUntil(t, "spans are in the queue", func() bool { return a.own("otelcol_exporter_queue_size", "exporter", "otlp_grpc") > 0 })
	a.end()
	a.start()
	spikes(t, a)
	jaeger.Start(t)
	spikes(t, a)

	want := emitted(t, a)
	maps.DeleteFunc(want, func(id string, _ bool) bool { return first[id] })
	waitUntil(t, "Jaeger has as many as were emitted since", func() bool { return len(stored(t, jaeger)) >= len(want) })
	assert.Equal(t, want, stored(t, jaeger))
	assert.Zero(t, a.own("otelcol_exporter_enqueue_failed_spans", "exporter", "otlp_grpc"))
	assert.Zero(t, a.own("otelcol_exporter_send_failed_spans", "exporter", "otlp_grpc"))
	t.Logf("%d spans arrived before, %d after", len(first), len(want))
}

// What finds no room in the queue is counted: all that was emitted either arrives or is
// in otelcol_rdma_events with the outcome "refused". The exporter counts attempts, of
// which the receiver makes four, in otelcol_exporter_enqueue_failed_spans.
func TestFullQueueCountsWhatItDrops(t *testing.T) {
	a := newAgent(t, "")
	closed := fmt.Sprintf("localhost:%d", testbed.FreePort(t))
	a.rest = fmt.Sprintf(withQueue, closed, tinyQueue)
	a.start()
	refused := func() int { return int(a.own("otelcol_rdma_events", "outcome", "refused")) }
	waitUntil(t, "spans find no room in the queue", func() bool {
		spikes(t, a)
		return refused() > 0
	})
	s := newSink()
	s.serveGRPC(t, closed, nil)
	spikes(t, a)

	want := emitted(t, a)
	waitUntil(t, "what is not dropped has arrived", func() bool { return len(s.spans())+refused() >= len(want) })
	got := s.spans()
	assert.Len(t, got, len(want)-refused())
	for id := range got {
		assert.True(t, want[id], "span %s was not emitted", id)
	}
	attempts := a.own("otelcol_exporter_enqueue_failed_spans", "exporter", "otlp_grpc")
	assert.GreaterOrEqual(t, attempts, float64(refused()))
	assert.Zero(t, a.own("otelcol_exporter_send_failed_spans", "exporter", "otlp_grpc"))
	t.Logf("%d spans were emitted, %d arrived, %d were dropped and counted; %g did not find room at once", len(want), len(got), refused(), attempts)
}

// spikes runs a job whose every request is slow, until all of them are exported.
func spikes(t *testing.T, a *agent) {
	t.Helper()
	before := len(emitted(t, a))
	truth := startJob(t, a.root, []string{"OTEL_SERVICE_NAME=spikes"}, "rate", "--rate", "100", "--requests", "100", "--latency-us", "300").end()
	require.NotZero(t, truth.Counts.Completions)
	want := before + int(truth.Counts.Completions)
	waitUntil(t, "all spikes are emitted", func() bool { return len(emitted(t, a)) >= want })
	require.Len(t, emitted(t, a), want)
}

// emitted returns the ids of the spans that the file exporter wrote.
func emitted(t *testing.T, a *agent) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	if _, err := os.Stat(a.file()); errors.Is(err, fs.ErrNotExist) {
		return ids
	}
	for _, line := range wrote(t, a.file()) {
		traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(line))
		require.NoError(t, err)
		addSpans(ids, traces)
	}
	return ids
}

func addSpans(ids map[string]bool, traces ptrace.Traces) {
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				ids[span.SpanID().String()] = true
			}
		}
	}
}

// stored returns the ids of the spans that Jaeger has.
func stored(t *testing.T, jaeger *backend.Jaeger) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for _, service := range jaeger.Services(t) {
		for _, trace := range jaeger.Traces(t, service, 100_000) {
			for i := range trace.Spans {
				ids[trace.Spans[i].ID] = true
			}
		}
	}
	return ids
}
