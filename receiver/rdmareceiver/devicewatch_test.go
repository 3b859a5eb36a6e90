package rdmareceiver

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// handDevices has one device. Its first sample takes as long as the test says.
type handDevices struct {
	takes, counts func(string) bool
	taken         atomic.Int32
	first         time.Duration
	// silent devices have no counters.
	silent bool
	at     []time.Time
}

// handGrowth is what port_xmit_data grows by in a second.
const handGrowth = 4096

func (h *handDevices) Sample() fabric.Sample {
	if h.taken.Add(1) == 1 {
		time.Sleep(h.first)
	}
	sample := fullSample()
	sample.At = time.Now()
	h.at = append(h.at, sample.At)
	if h.silent {
		sample.Readings = nil
	}
	for i := range sample.Readings {
		if r := &sample.Readings[i]; r.Counter.Name == "port_xmit_data" && r.Device == "mlx5_0" {
			r.Count = uint64(sample.At.Unix()) * handGrowth
		}
	}
	return sample
}

// withDevices makes the receiver of a rig find these devices.
func withDevices(r *rig, devices *handDevices) {
	r.platform.openHost = func(string, *slog.Logger) (host, error) {
		h := theHost()
		h.watchDevices = func(takes, counts func(string) bool) deviceSource {
			devices.takes, devices.counts = takes, counts
			return devices
		}
		return h, nil
	}
	r.factory = newFactory(r.platform)
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

// Counters speak for and against causes, also where they are not exported.
func TestDevicesAreSampledWithoutMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		devices := &handDevices{}
		withDevices(r, devices)
		r.addTraces(r.traces)
		r.start()
		time.Sleep(36 * time.Second)
		r.shutdown()
		assert.EqualValues(t, 5, devices.taken.Load(), "at once, and in the middle of each interval")
	})
}

// Where nothing is traced, nothing is slow either.
func TestDevicesAreNotSampledInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		devices := &handDevices{}
		withoutTracing(r, devices)
		r.addTraces(r.traces)
		r.start()
		time.Sleep(35 * time.Second)
		r.shutdown()
		assert.Zero(t, devices.taken.Load())
	})
}

// While something is slow devices are sampled every second, and never more often.
func TestDevicesAreSampledMoreOftenWhileSomethingIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		devices := &handDevices{}
		withDevices(r, devices)
		r.addTraces(r.traces)
		r.addMetrics(r.metrics)
		began := time.Now()
		r.start()
		time.Sleep(16500 * time.Millisecond)
		synctest.Wait()
		calm := devices.taken.Load()
		for range 200 {
			r.engine.completions <- fullCompletion()
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		assert.InDelta(t, 10, devices.taken.Load()-calm, 1)
		busy := devices.taken.Load()
		// The incident is open for ten seconds more, until there is a second without it.
		time.Sleep(70 * time.Second)
		synctest.Wait()
		assert.InDelta(t, 12+6, devices.taken.Load()-busy, 2)
		r.shutdown()
		for i, at := range devices.at[1:] {
			assert.GreaterOrEqual(t, at.Sub(devices.at[i]), minSampling)
		}
		for i, sampled := range timesUp(r.metrics.AllMetrics()) {
			late := sampled.AsTime().Sub(began) - time.Duration(5+10*i)*time.Second
			assert.Less(t, late.Abs(), minSampling, "what is exported keeps its pace")
		}
	})
}

// A burst gets the last counters from before it and the first from after it.
func TestCountersAroundABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, counted := range []bool{true, false} {
			var bursts []diagnose.Burst
			r := withCauses(t, func(r *rig) { withDevices(r, &handDevices{silent: !counted}) }, watching(&bursts))
			r.start()
			time.Sleep(7300 * time.Millisecond)
			c := slowIn(verbs.StageDevice, trainer, 1)
			c.Delivered = uint64(5*time.Second + 7300*time.Millisecond)
			c.Posted = c.Delivered - uint64(time.Millisecond)
			r.engine.completions <- c
			time.Sleep(2 * time.Second)
			r.shutdown()
			require.Len(t, bursts, 1)
			b := &bursts[0]
			require.NotNil(t, b.Device)
			assert.Equal(t, "mlx5_0", b.Device.Name)
			grew, ok := b.Counters.Grew(fabric.SourcePort, "port_xmit_data")
			assert.Equal(t, counted, ok, "nil where counters are switched off")
			if counted {
				assert.Equal(t, 3*time.Second, b.Counters.Span, "from 5 s to 8 s")
				assert.InDelta(t, 4*3*handGrowth, grew, 0, "in words of four bytes")
			}
		}
	})
}

// A NIC that does not answer costs the evidence and not the time.
func TestVerdictDoesNotWaitForADevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bursts []diagnose.Burst
		r := withCauses(t, func(r *rig) { withDevices(r, &handDevices{first: time.Minute}) }, watching(&bursts))
		r.start()
		time.Sleep(3 * time.Second)
		for range 5 {
			r.slowAgain(verbs.StagePoll, trainer, 1)
			time.Sleep(2 * time.Second)
		}
		synctest.Wait()
		require.Len(t, bursts, 5)
		for i := range bursts {
			assert.Nil(t, bursts[i].Counters)
		}
		assert.NotEmpty(t, recordsOf(r.logs, eventVerdict))
		time.Sleep(time.Minute)
		r.shutdown()
	})
}

// watching keeps the bursts that are judged. A cause is asked twice of one that no
// cause explains.
func watching(bursts *[]diagnose.Burst) func(*rig) {
	watch := diagnose.Cause{Name: "watched"}.JudgedBy(func(b *diagnose.Burst) diagnose.Judgement {
		if n := len(*bursts); n == 0 || (*bursts)[n-1].End != b.End {
			*bursts = append(*bursts, *b)
		}
		return diagnose.Judgement{}
	})
	return func(r *rig) { r.platform.causes = append(r.platform.causes, watch) }
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
		watch := newDeviceWatch(&handDevices{}, time.Second, func() uint64 { return 0 })
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
