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

// handDevices has one device. Its first sample takes as long as the test says.
type handDevices struct {
	takes, counts func(string) bool
	taken         int
	first         time.Duration
}

func (h *handDevices) Sample() fabric.Sample {
	if h.taken++; h.taken == 1 {
		time.Sleep(h.first)
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
		devices := &handDevices{}
		withDevices(r, devices)
		r.cfg.Devices.Exclude = filters("mlx5_1", "")
		r.addMetrics(r.metrics)
		began := time.Now()
		r.start()
		time.Sleep(38 * time.Second)
		r.shutdown()
		var at []time.Duration
		for _, sampled := range timesUp(r.metrics.AllMetrics()) {
			at = append(at, sampled.AsTime().Sub(began))
		}
		assert.Equal(t, []time.Duration{5 * time.Second, 15 * time.Second, 25 * time.Second, 35 * time.Second}, at,
			"one in the middle of each interval, emitted once")
		assert.False(t, devices.takes("mlx5_1"))
		assert.Nil(t, devices.counts)
	})
}

func TestDevicesAreNotSampledWithoutMetrics(t *testing.T) {
	for name, with := range map[string]func(*rig, *handDevices){
		"traced": withDevices, "not traced": withoutTracing,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				devices := &handDevices{}
				with(r, devices)
				r.addTraces(r.traces)
				r.start()
				time.Sleep(35 * time.Second)
				r.shutdown()
				assert.Zero(t, devices.taken)
			})
		})
	}
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

func TestUntilMiddle(t *testing.T) {
	for passed, want := range map[time.Duration]time.Duration{0: 5, 4: 1, 5: 10, 6: 9, 14: 1, 15: 10, 70: 5} {
		assert.Equal(t, want*time.Second, untilMiddle(passed*time.Second, 10*time.Second), "after %d s", passed)
	}
}
