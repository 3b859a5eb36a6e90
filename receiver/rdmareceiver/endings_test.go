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
