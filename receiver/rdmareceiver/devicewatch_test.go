package rdmareceiver

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// handDevices has one device. Its samples take as long as the test says: the
// first one, and each of the others.
type handDevices struct {
	takes, counts func(string) bool
	taken         int
	first, each   time.Duration
}

func (h *handDevices) Sample() fabric.Sample {
	if h.taken++; h.taken == 1 {
		time.Sleep(h.first)
	} else {
		time.Sleep(h.each)
	}
	sample := fullSample()
	sample.At = time.Now()
	return sample
}

// withDevices makes the receiver of a rig find these devices.
func withDevices(r *rig, devices *handDevices) {
	p := handPlatform(r.engine)
	p.openHost = func(string, *slog.Logger) (host, error) {
		h := theHost()
		h.watchDevices = func(takes, counts func(string) bool) deviceSource {
			devices.takes, devices.counts = takes, counts
			return devices
		}
		return h, nil
	}
	r.factory = newFactory(p)
}

// timesUp are the times of the points of rdma.port.up.
func timesUp(all []pmetric.Metrics) []pcommon.Timestamp {
	var times []pcommon.Timestamp
	for _, metrics := range all {
		eachMetric(metrics, func(_ pcommon.Resource, metric pmetric.Metric) {
			if metric.Name() == "rdma.port.up" {
				eachNumber(metric, func(at pmetric.NumberDataPoint) { times = append(times, at.Timestamp()) })
			}
		})
	}
	return times
}

func TestDevicesAreSampledEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		// No sample is ready at the instant of an export, or the order of the two
		// would decide which samples are emitted.
		devices := &handDevices{first: time.Millisecond, each: time.Millisecond}
		withDevices(r, devices)
		r.cfg.Devices.Exclude = filters("mlx5_1", "")
		r.addMetrics(r.metrics)
		r.start()
		time.Sleep(35 * time.Second)
		r.shutdown()
		times := timesUp(r.metrics.AllMetrics())
		require.GreaterOrEqual(t, len(times), 3)
		for i := range times[1:] {
			assert.Greater(t, times[i+1], times[i], "each sample is emitted once")
		}
		assert.False(t, devices.takes("mlx5_1"))
		assert.Nil(t, devices.counts)
	})
}

func TestDevicesAreNotSampledWithoutMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		devices := &handDevices{}
		withDevices(r, devices)
		r.addTraces(r.traces)
		r.start()
		time.Sleep(35 * time.Second)
		r.shutdown()
		assert.Zero(t, devices.taken)
	})
}

// A NIC whose firmware does not answer keeps nothing else from being exported.
func TestSlowDeviceDoesNotHoldUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		withDevices(r, &handDevices{first: time.Minute})
		r.engine.set(fullSnapshot(), nil)
		r.addMetrics(r.metrics)
		r.start()
		time.Sleep(35 * time.Second)
		assert.NotEmpty(t, r.metrics.AllMetrics())
		assert.Empty(t, timesUp(r.metrics.AllMetrics()))
		time.Sleep(30 * time.Second)
		r.shutdown()
		assert.NotEmpty(t, timesUp(r.metrics.AllMetrics()))
	})
}

func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watch := &deviceWatch{source: &handDevices{}, interval: time.Second}
		require.Nil(t, watch.latest())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		watch.run(ctx)
		assert.NotNil(t, watch.latest())
	})
}
