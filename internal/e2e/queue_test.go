//go:build backends

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"

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
    sending_queue: %s
extensions:
  file_storage: {directory: "{dir}/queue", create_directory: true}
service:
  extensions: [file_storage]
  pipelines:
    traces: {receivers: [rdma], exporters: [otlp_grpc, file]}
`

// tinyQueue has room for two requests.
const tinyQueue = "{storage: file_storage, sizer: requests, queue_size: 2, num_consumers: 1}"

// shippedQueue is that of config/agent.yaml, with all its sizes divided.
func shippedQueue(t *testing.T, by int) string {
	t.Helper()
	text, err := os.ReadFile(testbed.File(t, "config/agent.yaml"))
	require.NoError(t, err)
	var agent struct {
		Exporters map[string]struct {
			Queue map[string]any `yaml:"sending_queue"`
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &agent))
	queue := agent.Exporters["otlp_grpc"].Queue
	batch, is := queue["batch"].(map[string]any)
	require.True(t, is, "the queue of agent.yaml has no batch")
	for key, of := range map[string]map[string]any{"queue_size": queue, "min_size": batch, "max_size": batch} {
		size, is := of[key].(int)
		require.True(t, is, "the queue of agent.yaml has no %s", key)
		of[key] = size / by
	}
	inline, err := json.Marshal(queue)
	require.NoError(t, err)
	return string(inline)
}

// Nothing is lost while Jaeger is away and the collector is started anew meanwhile.
func TestQueueOutlivesBackendAndCollector(t *testing.T) {
	a := newAgent(t, "")
	jaeger := backend.StartJaeger(t)
	a.rest = fmt.Sprintf(withQueue, jaeger.GRPC, shippedQueue(t, 1))
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

// The queue of config/agent.yaml, made small: of all three signals what fits into it
// arrives after an outage, and what does not is counted, to the last item.
func TestSmallShippedQueueLosesWhatItCounts(t *testing.T) {
	a := newAgent(t, "")
	closed := fmt.Sprintf("localhost:%d", testbed.FreePort(t))
	a.keys = "slow_logs: true"
	a.rest = fmt.Sprintf(withQueue+metricsAndLogs, closed, shippedQueue(t, 512))
	a.start()
	dropped := func() map[string]int {
		return map[string]int{
			"resourceSpans":   int(a.ownOf("otelcol_rdma_events", map[string]string{"signal": "traces", "outcome": "refused"})),
			"resourceLogs":    int(a.ownOf("otelcol_rdma_events", map[string]string{"signal": "logs", "outcome": "refused"})),
			"resourceMetrics": int(a.own("otelcol_rdma_metric_batches_dropped", "reason", "refused")),
		}
	}
	// Several jobs have several times the metrics.
	jobs := make([]*job, 5)
	for i := range jobs {
		jobs[i] = startJob(t, a.root, []string{fmt.Sprintf("OTEL_SERVICE_NAME=job-%d", i)}, "rate", "--rate", "5", "--seconds", "0", "--latency-us", "300")
	}
	for signal := range dropped() {
		waitUntil(t, signal+" find no room in the queue", func() bool { return dropped()[signal] > 0 })
	}
	s := newSink()
	s.serveGRPC(t, closed, nil)
	waitUntil(t, "all signals arrive again", func() bool {
		got := s.received()
		return count(got, `{"resourceSpans":`) > 0 && count(got, `{"resourceLogs":`) > 0 && count(got, `{"resourceMetrics":`) > 0
	})
	completions := 0.0
	for _, j := range jobs {
		j.Stop()
		completions += float64(j.end().Counts.Completions)
	}
	waitUntil(t, "it is known what became of each completion, and of its log record", func() bool {
		return a.own("otelcol_rdma_events", "signal", "traces") == completions && a.own("otelcol_rdma_events", "signal", "logs") >= completions
	})

	written := slices.Compact(wrote(t, a.file()))
	want, batches := itemsOf(t, written), batchesOf(t, written)
	missing := map[string]int{}
	waitUntil(t, "what has not arrived is what was counted", func() bool {
		got := itemsOf(t, s.received())
		missing["resourceSpans"] = lackingOf(want["resourceSpans"], got["resourceSpans"])
		missing["resourceLogs"] = lackingOf(want["resourceLogs"], got["resourceLogs"])
		missing["resourceMetrics"] = 0
		for _, points := range batches {
			if lackingOf(points, got["resourceMetrics"]) > 0 {
				missing["resourceMetrics"]++
			}
		}
		return maps.Equal(missing, dropped())
	})
	a.end()
	got, all := itemsOf(t, s.received()), itemsOf(t, wrote(t, a.file()))
	for signal, items := range got {
		assert.Positive(t, len(items), signal)
		assert.Zero(t, lackingOf(items, all[signal]), "%s arrived that were not emitted", signal)
		t.Logf("%s: %d were emitted until the end of the outage, %d arrived until the end; dropped and counted: %d",
			signal, len(want[signal]), len(items), missing[signal])
	}
}

// lackingOf is how many items are not among others.
func lackingOf(items, others map[string]bool) (n int) {
	for item := range items {
		if !others[item] {
			n++
		}
	}
	return n
}

// batchesOf are the points of each request that has metrics.
func batchesOf(t *testing.T, requests []string) []map[string]bool {
	t.Helper()
	var all []map[string]bool
	for _, request := range requests {
		if points := itemsOf(t, []string{request})["resourceMetrics"]; len(points) > 0 {
			all = append(all, points)
		}
	}
	return all
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
