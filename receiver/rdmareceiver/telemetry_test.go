package rdmareceiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// told returns the values of one of the receiver's own metrics, by the values of
// the given attributes.
func told(t *testing.T, telemetry *componenttest.Telemetry, name string, attributes ...string) map[string]float64 {
	t.Helper()
	metric, err := telemetry.GetMetric("otelcol_" + name)
	require.NoError(t, err)
	values := map[string]float64{}
	add := func(set attribute.Set, value float64) {
		key := ""
		for i, a := range attributes {
			v, _ := set.Value(attribute.Key(a))
			if i > 0 {
				key += " "
			}
			key += v.AsString()
		}
		values[key] += value
	}
	switch data := metric.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, p.Value)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, float64(p.Count))
		}
	default:
		t.Fatalf("%s is a %T", name, data)
	}
	return values
}

func sum(values map[string]float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

func TestReceiverTellsOfItself(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	defer func() { require.NoError(t, telemetry.Shutdown(t.Context())) }()
	self, err := newSelfTelemetry(telemetry.NewTelemetrySettings())
	require.NoError(t, err)
	snap := verbs.Snapshot{
		WQEs: verbs.WQEBalance{
			Posted: 100, Delivered: 40, Retired: 30, Undone: 5, Outstanding: 10,
			Discarded: map[string]uint64{"exit": 8}, Lost: map[string]uint64{"map_full": 6, "chain": 1},
		},
		Completions: verbs.CompletionBalance{Seen: 77, Matched: 40, Received: 20, Unsynced: 7, BeforeAttach: 4, Duplicate: 3, Ambiguous: 2, Unmatched: 1},
		Losses:      map[string]uint64{"ringbuf_full": 9},
		Probes: []verbs.ProbeInfo{
			{Provider: "mlx5", Functions: []string{"post_send", "poll_cq"}, Mode: "windows", Link: "multi"},
			{Provider: "mlx5", Functions: []string{"post_send"}, Mode: "windows", Link: "multi"},
		},
	}
	require.Zero(t, snap.WQEs.Unexplained())
	require.Zero(t, snap.Completions.Unexplained())
	self.keep(&snap, 12)
	self.keepFloors(map[string]time.Duration{"mlx5_0": 3 * time.Millisecond})
	self.countEvents("traces", 4, outcomeExported)
	self.countEvents("traces", 2, outcomeRateLimited)
	self.countEvents("logs", 0, outcomeRefused)
	self.countDroppedMetrics(outcomeRefused)
	self.recordDelay(time.Second)

	assert.Equal(t, map[string]float64{
		"delivered ": 40, "retired ": 30, "undone ": 5, "outstanding ": 10, "discarded exit": 8, "lost map_full": 6, "lost chain": 1,
	}, told(t, telemetry, "rdma_wqes", "fate", "reason"))
	assert.InDelta(t, sum(told(t, telemetry, "rdma_wqes_posted")), sum(told(t, telemetry, "rdma_wqes")), 0, "the books balance")
	assert.InDelta(t, 77, sum(told(t, telemetry, "rdma_completions_seen")), 0)
	assert.InDelta(t, 77, sum(told(t, telemetry, "rdma_completions")), 0, "the books balance")
	assert.Equal(t, map[string]float64{"ringbuf_full": 9}, told(t, telemetry, "rdma_losses", "reason"))
	assert.Equal(t, map[string]float64{"mlx5 post_send windows multi": 2, "mlx5 poll_cq windows multi": 1},
		told(t, telemetry, "rdma_probes", "provider", "function", "mode", "link"))
	assert.Equal(t, map[string]float64{"mlx5_0": 0.003}, told(t, telemetry, "rdma_reporting_floor", attributeDevice))
	assert.Equal(t, map[string]float64{"": 12}, told(t, telemetry, "rdma_series"))
	assert.Equal(t, map[string]float64{"traces exported": 4, "traces rate_limited": 2}, told(t, telemetry, "rdma_events", "signal", "outcome"))
	assert.Equal(t, map[string]float64{"refused": 1}, told(t, telemetry, "rdma_metric_batches_dropped", "reason"))
	assert.Equal(t, map[string]float64{"": 1}, told(t, telemetry, "rdma_event_delay"))
	self.shutdown()
}

// Every slow completion that the engine delivers is in exactly one outcome.
// betweenTicks lets what comes every second from then on never meet the end of a
// window, of which either could be first.
func betweenTicks() {
	synctest.Wait()
	time.Sleep(selectionWindow / 2)
}

func TestEveryEventIsAccountedFor(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*rig)
		want   map[string]float64
	}{
		{"exported", func(r *rig) { r.addTraces(r.traces) }, map[string]float64{
			// The burst, then what is over it; five more a second.
			"traces exported": 50 + 5*39, "traces rate_limited": 40*100 - 50 - 5*39, "traces refused": 0, "traces queue_full": 0,
		}},
		{"refused", func(r *rig) { r.addTraces(consumertest.NewErr(errRefused)) }, map[string]float64{
			"traces refused": 50 + 5*39, "traces rate_limited": 40*100 - 50 - 5*39, "traces queue_full": 0,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				telemetry := componenttest.NewTelemetry()
				r := newRig(t)
				r.telemetry = telemetry
				tc.change(r)
				r.start()
				betweenTicks()
				for range 40 {
					for range 100 {
						r.engine.completions <- fullCompletion()
					}
					time.Sleep(time.Second)
				}
				time.Sleep(time.Minute)
				assert.Equal(t, tc.want, told(t, telemetry, "rdma_events", "signal", "outcome"))
				r.shutdown()
				require.NoError(t, telemetry.Shutdown(t.Context()))
			})
		})
	}
}

// An alert asks for the increase of what is dropped, which a series that begins later
// than the receiver does not have.
func TestDropsAreCountedFromNothingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry := componenttest.NewTelemetry()
		r := newRig(t)
		r.telemetry = telemetry
		r.addTraces(r.traces)
		r.addLogs(r.logs)
		r.start()
		synctest.Wait()
		assert.Equal(t, map[string]float64{"traces queue_full": 0, "traces refused": 0, "logs queue_full": 0, "logs refused": 0},
			told(t, telemetry, "rdma_events", "signal", "outcome"))
		r.shutdown()
		require.NoError(t, telemetry.Shutdown(t.Context()))
	})
}

func TestQueueFullIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry := componenttest.NewTelemetry()
		r := newRig(t)
		r.telemetry = telemetry
		r.addTraces(stuckTraces{consumertest.NewNop()})
		r.start()
		betweenTicks()
		for range 100 {
			r.engine.completions <- fullCompletion()
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		// One batch is in the pipeline, the others wait.
		assert.Equal(t, map[string]float64{"traces queue_full": 100 - 1 - eventQueue, "traces refused": 0},
			told(t, telemetry, "rdma_events", "signal", "outcome"))
		r.shutdown()
		require.NoError(t, telemetry.Shutdown(t.Context()))
	})
}

// What comes while its pipeline does not run is not exported, and leads nowhere.
func TestPipelineThatDoesNotRunTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry := componenttest.NewTelemetry()
		r := newRig(t)
		r.telemetry = telemetry
		r.addMetrics(r.metrics)
		r.addTraces(r.traces)
		r.addLogs(r.logs)
		r.engine.set(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 5, 450*time.Microsecond)}}, nil)
		require.NoError(t, r.components[0].Start(t.Context(), r.host))
		betweenTicks()
		r.engine.completions <- fullCompletion()
		r.engine.stuck <- theStuck()
		time.Sleep(15 * time.Second)
		assert.Equal(t, map[string]float64{"traces refused": 1, "logs refused": 3, "traces queue_full": 0, "logs queue_full": 0},
			told(t, telemetry, "rdma_events", "signal", "outcome"))
		eachMetric(r.metrics.AllMetrics()[0], func(_ pcommon.Resource, metric pmetric.Metric) {
			if metric.Name() == "rdma.wqe.duration" {
				assert.Zero(t, metric.ExponentialHistogram().DataPoints().At(0).Exemplars().Len())
			}
		})
		_, err := telemetry.GetMetric("otelcol_rdma_event_delay")
		require.Error(t, err, "nothing was handed over")
		r.shutdown()
		require.NoError(t, telemetry.Shutdown(t.Context()))
	})
}

// The collector counts what the receiver hands over, once a batch.
func TestObsReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry := componenttest.NewTelemetry()
		r := newRig(t)
		r.telemetry = telemetry
		r.addTraces(&flakyTraces{refusals: 2, err: errRefused})
		r.addLogs(consumertest.NewErr(errRefused))
		r.addMetrics(r.metrics)
		r.start()
		synctest.Wait()
		r.engine.completions <- fullCompletion()
		r.engine.stuck <- theStuck()
		r.engine.set(fullSnapshot(), nil)
		time.Sleep(15 * time.Second)
		assert.InDelta(t, 1, sum(told(t, telemetry, "receiver_accepted_spans")), 0)
		assert.InDelta(t, 0, sum(told(t, telemetry, "receiver_accepted_log_records")), 0)
		assert.InDelta(t, 3, sum(told(t, telemetry, "receiver_refused_log_records")), 0, "a stuck send, an incident and its end")
		assert.InDelta(t, r.metrics.AllMetrics()[0].DataPointCount(), sum(told(t, telemetry, "receiver_accepted_metric_points")), 0)
		r.shutdown()
		require.NoError(t, telemetry.Shutdown(t.Context()))
	})
}
