//go:build backends

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/verbsim"
)

const withBoth = `exporters:
  otlp_grpc: {endpoint: "%s", tls: {insecure: true}}
  otlp_http: {endpoint: "%s"}
service:
  pipelines:
    traces: {receivers: [rdma], exporters: [otlp_grpc]}
    metrics: {receivers: [rdma], exporters: [otlp_http]}
`

// The job below has a latency, and a share of its requests is a spike later.
const (
	latency = time.Millisecond
	spike   = 20 * time.Millisecond
)

// flavours are the kinds of histogram, with expressions for how many durations there are
// and for a quantile of them. The latter is off by its buckets, and by what the job's own
// clock measures more.
var flavours = []struct {
	kind            string
	count, quantile string
	tolerance       float64
}{
	{
		"exponential",
		`histogram_count(sum(rdma_wqe_duration_seconds{job="bench"}))`,
		`histogram_quantile(%g, sum(rdma_wqe_duration_seconds{job="bench"}))`,
		0.2, // two buckets
	},
	{
		"explicit",
		`sum(rdma_wqe_duration_seconds_count{job="bench"})`,
		`histogram_quantile(%g, sum by (le) (rdma_wqe_duration_seconds_bucket{job="bench"}))`,
		1, // one bucket
	},
}

// Prometheus tells the latency that the device was given, whichever histogram it gets,
// and its exemplars lead to traces that Jaeger has.
func TestDurationsInPrometheus(t *testing.T) {
	for _, flavour := range flavours {
		t.Run(flavour.kind, func(t *testing.T) {
			a := newAgent(t, "")
			jaeger, prometheus := backend.StartJaeger(t), backend.StartPrometheus(t)
			a.keys = "histogram: " + flavour.kind
			a.rest = fmt.Sprintf(withBoth, jaeger.GRPC, prometheus.OTLP)
			a.start()
			begin := time.Now()
			j := startJob(t, a.root, []string{"OTEL_SERVICE_NAME=bench"}, "perftest-lat", "--requests", "3000",
				"--latency-us", fmt.Sprint(latency.Microseconds()), "--slow-share", "0.05", "--spike-us", fmt.Sprint(spike.Microseconds()))
			truth := j.end()
			records, err := verbsim.ReadRecordsFile(j.records())
			require.NoError(t, err)
			a.end()

			assert.Equal(t, float64(truth.Counts.Completions), value(t, prometheus, flavour.count))
			for quantile, least := range map[float64]time.Duration{0.5: latency, 0.99: latency + spike} {
				got := value(t, prometheus, fmt.Sprintf(flavour.quantile, quantile))
				want := quantileOf(records, quantile)
				assert.GreaterOrEqual(t, want, least.Seconds(), "the device was given this much")
				assert.InEpsilon(t, want, got, flavour.tolerance, "quantile %g", quantile)
				t.Logf("quantile %g: %.6f s, by the clock of the job %.6f s", quantile, got, want)
			}
			checkExemplars(t, prometheus, jaeger, begin)
		})
	}
}

// value evaluates an expression that gives one number.
func value(t *testing.T, prometheus *backend.Prometheus, expression string) float64 {
	t.Helper()
	vector := prometheus.Query(t, expression)
	require.Len(t, vector, 1, expression)
	return float64(vector[0].Value)
}

// quantileOf is that of the durations by the clock of the job, in seconds.
func quantileOf(records []verbsim.Record, quantile float64) float64 {
	durations := make([]uint64, 0, len(records))
	for i := range records {
		durations = append(durations, records[i].PollAfter-records[i].PostBefore)
	}
	slices.Sort(durations)
	return time.Duration(durations[int(quantile*float64(len(durations)))]).Seconds()
}

func checkExemplars(t *testing.T, prometheus *backend.Prometheus, jaeger *backend.Jaeger, since time.Time) {
	t.Helper()
	series, err := prometheus.API.QueryExemplars(t.Context(), `{__name__=~"rdma_wqe_duration_seconds.*", job="bench"}`, since, time.Now())
	require.NoError(t, err)
	checked := 0
	for _, one := range series {
		for _, exemplar := range one.Exemplars {
			checkExemplar(t, jaeger, exemplar)
			checked++
		}
	}
	assert.Positive(t, checked, "exemplars")
	t.Logf("%d exemplars lead to their spans", checked)
}

// checkExemplar looks for the span of an exemplar, and holds its duration against it:
// Jaeger counts microseconds.
func checkExemplar(t *testing.T, jaeger *backend.Jaeger, exemplar v1.Exemplar) {
	t.Helper()
	id := string(exemplar.Labels["trace_id"])
	trace, found := jaeger.Trace(t, id)
	require.True(t, found, "Jaeger has no trace %s", id)
	at := slices.IndexFunc(trace.Spans, func(s backend.Span) bool { return s.ID == string(exemplar.Labels["span_id"]) })
	require.GreaterOrEqual(t, at, 0, "trace %s has no span of %v", id, exemplar)
	assert.InDelta(t, float64(exemplar.Value), float64(trace.Spans[at].Duration)/1e6, 2e-6)
}
