//go:build backends

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

const (
	// metricsAndLogs go the way that withQueue has for traces.
	metricsAndLogs = `    metrics: {receivers: [rdma], exporters: [otlp_grpc, file]}
    logs: {receivers: [rdma], exporters: [otlp_grpc, file]}
`
	// requestQueue keeps request by request, as they came.
	requestQueue = "{storage: file_storage, sizer: bytes, queue_size: 67108864}"
)

// What spans, metrics and logs say of an outage of the gateway arrives after it, each
// request once, though the collector is started anew meanwhile.
func TestAllSignalsOutliveAnOutage(t *testing.T) {
	a := newAgent(t, "")
	closed := fmt.Sprintf("localhost:%d", testbed.FreePort(t))
	a.keys = "slow_logs: true"
	a.rest = fmt.Sprintf(withQueue+metricsAndLogs, closed, requestQueue)
	job := func() {
		startJob(t, a.root, nil, "rate", "--rate", "200", "--seconds", "3", "--latency-us", "300").end()
	}
	a.start()
	job()
	waitUntil(t, "something is in the queue", func() bool { return a.own("otelcol_exporter_queue_size", "exporter", "otlp_grpc") > 0 })
	a.end()
	before := wrote(t, a.file())
	for _, kind := range []string{`{"resourceSpans":`, `{"resourceMetrics":`, `{"resourceLogs":`} {
		assert.Positive(t, count(before, kind), kind)
	}

	a.start()
	job()
	s := newSink()
	s.serveGRPC(t, closed, nil)
	job()
	want := wrote(t, a.file())
	waitUntil(t, "all that was written until now has arrived", func() bool { return len(lacking(want, s.received())) == 0 })
	a.end()
	got := s.received()
	assert.Empty(t, lacking(got, wrote(t, a.file())), "what arrived is what was emitted")
	slices.Sort(got)
	assert.Len(t, slices.Compact(slices.Clone(got)), len(got), "nothing arrived twice")
	t.Logf("%d requests from before the second start, %d until after the outage, %d in all", len(before), len(want), len(got))
}

// lacking are the requests that are not among others.
func lacking(requests, others []string) []string {
	among := make(map[string]bool, len(others))
	for _, one := range others {
		among[one] = true
	}
	return slices.DeleteFunc(slices.Clone(requests), func(one string) bool { return among[one] })
}
