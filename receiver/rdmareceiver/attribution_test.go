package rdmareceiver

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// slowSnapshot counts what was slow of one process.
func slowSnapshot(process verbs.ProcessID, slow loss) verbs.Snapshot {
	series := seriesOf(process, 2*slow.count, 450*time.Microsecond)
	series.Slow, series.Excess = slow.count, slow.excess
	return verbs.Snapshot{Series: []verbs.Series{series}}
}

// lossesIn are slow completions and their time by cause, in the last metrics.
func lossesIn(t *testing.T, r *rig) map[string]loss {
	t.Helper()
	all := r.metrics.AllMetrics()
	require.NotEmpty(t, all)
	losses := map[string]loss{}
	last := all[len(all)-1]
	for _, p := range values(last, "rdma.wqe.slow_completions") {
		cause := causeOf(p.Attributes())
		losses[cause] = losses[cause].plus(loss{count: uint64(p.IntValue())})
	}
	for _, p := range values(last, "rdma.wqe.excess_time") {
		cause := causeOf(p.Attributes())
		losses[cause] = losses[cause].plus(loss{excess: time.Duration(p.DoubleValue()*1e9 + 0.5)})
	}
	return losses
}

func causeOf(attributes pcommon.Map) string {
	cause, _ := attributes.Get(attributeSlowCause)
	return cause.Str()
}

// Whatever is reported of what the kernel side counts, and whenever it is counted,
// the sums over the causes are exactly what it counts, and nothing that was
// counted under a cause is taken back.
func TestCausesAddUpToTheCounts(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			r := withCauses(t)
			r.cfg.CollectionInterval = time.Duration(1+random.IntN(10)) * time.Second
			r.start()
			var counted loss
			causes := map[string]loss{}
			for range 60 {
				for range random.IntN(20) {
					stage := []verbs.Stage{verbs.StagePoll, verbs.StageDevice, verbs.StagePost}[random.IntN(3)]
					c := slowIn(stage, trainer, uint32(stage))
					one := loss{count: 1, excess: c.Excess()}
					counted = counted.plus(one)
					r.engine.set(slowSnapshot(trainer, counted), nil)
					if random.IntN(4) == 0 {
						continue // The kernel side counted it and did not report it.
					}
					r.engine.completions <- c
					cause := map[verbs.Stage]string{verbs.StagePoll: "late_poller", verbs.StageDevice: "retransmission", verbs.StagePost: "unknown"}[stage]
					causes[cause] = causes[cause].plus(one)
				}
				time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
			}
			r.shutdown()
			got := lossesIn(t, r)
			var sum loss
			for cause, l := range got {
				sum = sum.plus(l)
				if cause != causeUnknown {
					assert.Equal(t, causes[cause], l, "seed %d: %s", seed, cause)
				}
			}
			assert.Equal(t, counted, sum, "seed %d", seed)
			assertMonotonic(t, r)
		})
	}
}

func assertMonotonic(t *testing.T, r *rig) {
	t.Helper()
	before := map[string]int64{}
	for _, metrics := range r.metrics.AllMetrics() {
		for _, p := range values(metrics, "rdma.wqe.slow_completions") {
			cause := causeOf(p.Attributes())
			assert.GreaterOrEqual(t, p.IntValue(), before[cause], cause)
			before[cause] = p.IntValue()
		}
	}
}

// A cause that comes before its completion is counted waits for it, but not for
// ever.
func TestCauseThatIsAheadOfTheCounts(t *testing.T) {
	key := counterKey{trainer, "mlx5_0"}
	b := causeBook{}
	one := loss{count: 1, excess: 10}
	b.add(map[counterKey]lossByCause{key: {"rnr": {count: 3, excess: 30}}})
	assert.Equal(t, lossByCause{"rnr": one, "unknown": {}}, b.share(key, one))
	b.add(nil)
	assert.Equal(t, lossByCause{"rnr": one, "unknown": {}}, b.share(key, one))
	b.add(nil)
	assert.Equal(t, lossByCause{"unknown": one}, b.share(key, one))
}

// Whoever makes processes come and go does not fill the memory.
func TestCausesThatWaitAreBounded(t *testing.T) {
	a := newAttributions()
	for i := range uint64(2 * maxAttributions) {
		a.add(counterKey{verbs.ProcessID{TGID: 1, Incarnation: i}, "mlx5_0"}, "rnr", loss{count: 1})
	}
	assert.Len(t, a.take(), maxAttributions)
	a.add(counterKey{trainer, "mlx5_0"}, "rnr", loss{count: 1})
	assert.Len(t, a.take(), 1)
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	a := newAttributions()
	a.reach(5)
	a.await(t.Context(), 5)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.await(ctx, 6)
}
