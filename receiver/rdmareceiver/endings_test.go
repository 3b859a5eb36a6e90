package rdmareceiver

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// choosyMetrics refuses batches while it is told to.
type choosyMetrics struct {
	consumertest.MetricsSink
	mu      sync.Mutex
	refuses bool
}

func (c *choosyMetrics) refuse(refuses bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuses = refuses
}

func (c *choosyMetrics) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuses {
		return errRefused
	}
	return c.MetricsSink.ConsumeMetrics(ctx, metrics)
}

func endsIn(all []pmetric.Metrics, name string) int {
	n := 0
	for _, metrics := range all {
		for _, point := range values(metrics, name) {
			if point.Flags().NoRecordedValue() {
				n++
			}
		}
	}
	return n
}

func TestEndThatWasRefusedIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		sink := &choosyMetrics{}
		r.addMetrics(sink)
		r.engine.set(verbs.Snapshot{Queues: []verbs.QueueInfo{queueOf(trainer, 1)}}, nil)
		r.start()
		time.Sleep(15 * time.Second)
		require.Len(t, sink.AllMetrics(), 1)
		sink.refuse(true)
		r.engine.set(verbs.Snapshot{}, nil)
		time.Sleep(20 * time.Second)
		sink.refuse(false)
		time.Sleep(30 * time.Second)
		r.shutdown()
		assert.Equal(t, 1, endsIn(sink.AllMetrics(), "rdma.sq.outstanding"), "once it was taken it is not told any more")
	})
}

func TestEndings(t *testing.T) {
	e := endings{most: 2}
	of := owner{job: jobKey{service: "llm-training"}}
	key := func(device string) seriesKey { return seriesKey{owner: of, device: device} }
	state := &ownerState{start: wallSeconds(7)}
	e.keep(metricBatch{ended: []seriesKey{key("a"), key("b"), key("c")}, owners: map[owner]*ownerState{of: state}})
	owners := map[owner]*ownerState{}
	got := e.add([]seriesKey{key("b"), key("d")}, owners, map[seriesKey]*series{})
	assert.ElementsMatch(t, []seriesKey{key("a"), key("b"), key("d")}, got, "each once, and no more are kept than there is room for")
	assert.Same(t, state, owners[of], "the series began when its owner did")
	assert.Empty(t, e.add(nil, owners, nil))

	e.keep(metricBatch{ended: []seriesKey{key("a"), key("b")}})
	got = e.add(nil, owners, map[seriesKey]*series{key("a"): {}})
	assert.Equal(t, []seriesKey{key("b")}, got, "what is alive again has not ended")
}

// gauges has one point for each device.
func gauges(devices ...string) pmetric.MetricSlice {
	metrics := pmetric.NewMetricSlice()
	for _, device := range devices {
		points := pmetric.NewMetric()
		points.SetName("rdma.port.up")
		points.SetEmptyGauge().DataPoints().AppendEmpty().Attributes().PutStr(attributeDevice, device)
		one := pmetric.NewMetricSlice()
		points.MoveTo(one.AppendEmpty())
		merge(one, metrics, false)
	}
	return metrics
}

// ended returns the devices whose series end in metrics, with the times of those.
func ended(metrics pmetric.MetricSlice) map[string]pcommon.Timestamp {
	found := map[string]pcommon.Timestamp{}
	for i := range metrics.Len() {
		eachNumber(metrics.At(i), func(at pmetric.NumberDataPoint) {
			if at.Flags().NoRecordedValue() {
				device, _ := at.Attributes().Get(attributeDevice)
				found[device.Str()] = at.Timestamp()
			}
		})
	}
	return found
}

func TestEndOfADeviceThatWasRefusedIsToldAgain(t *testing.T) {
	var s seriesEnds
	emit := func(second int64, devices ...string) (map[string]pcommon.Timestamp, pmetric.MetricSlice) {
		metrics := gauges(devices...)
		ends := s.end(metrics, wallSeconds(second))
		assert.Equal(t, ended(metrics), ended(ends))
		return ended(metrics), ends
	}
	emit(10, "mlx5_0", "mlx5_1", "mlx5_2")
	told, refused := emit(20, "mlx5_0")
	require.Equal(t, map[string]pcommon.Timestamp{"mlx5_1": wallSeconds(20), "mlx5_2": wallSeconds(20)}, told)
	s.keep(refused)
	told, refused = emit(30, "mlx5_2")
	assert.Equal(t, map[string]pcommon.Timestamp{"mlx5_0": wallSeconds(30), "mlx5_1": wallSeconds(30)}, told, "mlx5_2 is back")
	twice := pmetric.NewMetricSlice()
	refused.CopyTo(twice)
	s.keep(refused)
	s.keep(twice)
	told, _ = emit(40, "mlx5_2")
	assert.Len(t, told, 2)
	told, _ = emit(50, "mlx5_2")
	assert.Empty(t, told, "they were exported")
}
