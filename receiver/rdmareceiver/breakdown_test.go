package rdmareceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func withMetricAttributes(attributes ...MetricAttribute) func(*Config) {
	return func(c *Config) { c.MetricAttributes = attributes }
}

// brokenDownSnapshot is the full one with a Completion Queue known of one queue.
func brokenDownSnapshot() verbs.Snapshot {
	snap := fullSnapshot()
	snap.Queues[0].SendCQ = 0x7f0000002000
	return snap
}

func TestMetricAttributesGolden(t *testing.T) {
	b := newBench(t, theHost().processes, withMetricAttributes(metricAttributes()...))
	b.collect(brokenDownSnapshot())
	requireGoldenMetrics(t, "metrics-attributes", b.collect(brokenDownSnapshot()))
}

// The attributes that are asked for are on the metrics whose source knows them,
// with the values of spans and logs; the sums over them are those without.
func TestMetricAttributes(t *testing.T) {
	whole := newBench(t, theHost().processes, nil).collect(brokenDownSnapshot())
	d := declared(t)
	for _, asked := range append(metricAttributes(), "") {
		t.Run(string(asked), func(t *testing.T) {
			want := withMetricAttributes(asked)
			if asked == "" {
				want = nil
			}
			got := newBench(t, theHost().processes, want).collect(brokenDownSnapshot())
			for _, name := range []string{"rdma.wqe.completions", "rdma.io", "rdma.sq.outstanding", "rdma.sq.limit", "rdma.rq.outstanding", "rdma.queues"} {
				assert.Equal(t, total(whole, name), total(got, name), name)
			}
			on := map[string]bool{}
			eachMetric(got, func(_ pcommon.Resource, metric pmetric.Metric) {
				eachPoint(metric, func(at dataPoint) {
					for _, a := range metricAttributes() {
						value, there := at.Attributes().Get(string(a))
						assert.False(t, there && a != asked, "%s is on %s", a, metric.Name())
						if there {
							on[metric.Name()] = true
							assertDeclaredValue(t, d, string(a), value)
						}
					}
				})
			})
			assert.Equal(t, metricsWith(asked), on)
		})
	}
}

// metricsWith names the metrics that can have an attribute.
func metricsWith(asked MetricAttribute) map[string]bool {
	with := map[string]bool{}
	add := func(names ...string) {
		for _, name := range names {
			with[name] = true
		}
	}
	switch asked {
	case MetricAttributePID, MetricAttributeRank:
		add("rdma.wqe.duration", "rdma.wqe.stage.time", "rdma.wqe.excess_time", "rdma.wqe.completions",
			"rdma.wqe.slow_completions", "rdma.io", "rdma.sq.rejected_posts", "rdma.rq.empty",
			"rdma.mr.registrations", "rdma.mr.registration.size", "rdma.mr.registration.time", "rdma.mr.deregistration.time",
			"rdma.mr.regions", "rdma.mr.registered")
		fallthrough
	case MetricAttributeQPNumber:
		add("rdma.rq.outstanding")
		fallthrough
	case MetricAttributeCQHandle:
		add("rdma.queues", "rdma.sq.outstanding", "rdma.sq.limit", "rdma.sq.peak_outstanding", "rdma.sq.utilization", "rdma.wqe.oldest_outstanding")
	}
	return with
}

func total(metrics pmetric.Metrics, name string) (sum int64) {
	for _, point := range values(metrics, name) {
		sum += point.IntValue()
	}
	return sum
}

func TestMetricsByRankAndPID(t *testing.T) {
	b := newBench(t, theHost().processes, withMetricAttributes(MetricAttributePID, MetricAttributeRank))
	got := b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 100, time.Microsecond), seriesOf(peer, 40, time.Microsecond)}})
	assert.EqualValues(t, 100, value(t, got, "rdma.wqe.completions", "process.pid", "4242", "rdma.rank", "9").IntValue())
	unranked := value(t, got, "rdma.wqe.completions", "process.pid", "4343")
	assert.EqualValues(t, 40, unranked.IntValue())
	_, there := unranked.Attributes().Get(attributeRank)
	assert.False(t, there, "a rank that is not known is absent")
	require.Equal(t, 1, got.ResourceMetrics().Len(), "the processes of a job share a resource")
}

func TestExitedProcessEndsItsSeries(t *testing.T) {
	processes := theHost().processes.(listedProcesses)
	reborn := verbs.ProcessID{TGID: peer.TGID, Incarnation: 77}
	processes[reborn] = processes[peer]
	b := newBench(t, processes, withMetricAttributes(MetricAttributePID))
	both := verbs.Snapshot{
		Series: []verbs.Series{seriesOf(trainer, 100, time.Microsecond), seriesOf(peer, 40, time.Microsecond)},
		Queues: []verbs.QueueInfo{queueOf(trainer, 1), queueOf(peer, 1)},
	}
	b.collect(both)
	last := both
	last.Series = []verbs.Series{seriesOf(trainer, 110, time.Microsecond), seriesOf(peer, 45, time.Microsecond)}
	last.Exited = []verbs.ProcessID{peer}
	got := b.collect(last)
	assert.EqualValues(t, 45, value(t, got, "rdma.wqe.completions", "process.pid", "4343").IntValue(), "what it did at last")
	assert.True(t, value(t, got, "rdma.sq.outstanding", "process.pid", "4343").Flags().NoRecordedValue())

	alone := verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 120, time.Microsecond)}, Queues: []verbs.QueueInfo{queueOf(trainer, 1)}}
	got = b.collect(alone)
	assert.True(t, value(t, got, "rdma.wqe.completions", "process.pid", "4343").Flags().NoRecordedValue())
	assert.Empty(t, values(got, "rdma.sq.outstanding", "process.pid", "4343"), "one point ends a series")
	assert.False(t, value(t, got, "rdma.wqe.completions", "process.pid", "4242").Flags().NoRecordedValue())
	assert.Empty(t, values(b.collect(alone), "rdma.wqe.completions", "process.pid", "4343"), "one point ends a series")

	// Another process with the same pid begins at 0, and says since when.
	alone.Series = append(alone.Series, seriesOf(reborn, 5, time.Microsecond))
	point := value(t, b.collect(alone), "rdma.wqe.completions", "process.pid", "4343")
	assert.EqualValues(t, 5, point.IntValue())
	assert.Equal(t, wallSeconds(b.second-10), point.StartTimestamp())
}

// A rank outlives its processes as the job does.
func TestRestartedRankMakesNoNewSeries(t *testing.T) {
	b := newBench(t, theHost().processes, withMetricAttributes(MetricAttributeRank))
	first := b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 100, time.Microsecond)}})
	b.collect(verbs.Snapshot{})
	restarted := seriesOf(trainer, 10, time.Microsecond)
	point := value(t, b.collect(verbs.Snapshot{Series: []verbs.Series{restarted}}), "rdma.wqe.completions", "rdma.rank", "9")
	assert.EqualValues(t, 110, point.IntValue())
	assert.Equal(t, value(t, first, "rdma.wqe.completions").StartTimestamp(), point.StartTimestamp())
}

func TestDestroyedQueueEndsItsSeries(t *testing.T) {
	b := newBench(t, theHost().processes, withMetricAttributes(MetricAttributeQPNumber))
	b.collect(verbs.Snapshot{Queues: []verbs.QueueInfo{queueOf(trainer, 1), queueOf(trainer, 2)}})
	one := verbs.Snapshot{Queues: []verbs.QueueInfo{queueOf(trainer, 1)}}
	got := b.collect(one)
	for _, name := range []string{"rdma.sq.outstanding", "rdma.sq.peak_outstanding", "rdma.rq.outstanding", "rdma.queues"} {
		assert.True(t, value(t, got, name, "rdma.qp.number", "2").Flags().NoRecordedValue(), name)
		assert.False(t, value(t, got, name, "rdma.qp.number", "1").Flags().NoRecordedValue(), name)
	}
	assert.Empty(t, values(b.collect(one), "rdma.sq.outstanding", "rdma.qp.number", "2"))
}

// A thousand queues in room for a hundred series: the rest is in one point for
// each metric, and nothing is lost.
func TestQueuesOverTheBoundAreFolded(t *testing.T) {
	b := newBench(t, theHost().processes, func(c *Config) {
		c.MaxSeries = 100
		c.MetricAttributes = metricAttributes()
	})
	var snap verbs.Snapshot
	for qpn := range uint32(1000) {
		q := queueOf(trainer, qpn)
		q.SendCQ, q.Peak = uint64(0x1000+qpn), qpn
		snap.Queues = append(snap.Queues, q)
	}
	for range 3 {
		got := b.collect(snap)
		assert.LessOrEqual(t, got.DataPointCount(), 100)
		for _, name := range []string{"rdma.sq.outstanding", "rdma.sq.limit", "rdma.rq.outstanding", "rdma.queues"} {
			folded := value(t, got, name, attributeOverflow, "true")
			assert.Equal(t, 1, folded.Attributes().Len(), name)
			assert.Positive(t, folded.IntValue(), name)
		}
		assert.EqualValues(t, 1000*8, total(got, "rdma.sq.outstanding"))
		assert.EqualValues(t, 1000, total(got, "rdma.queues"))
		highest := value(t, got, "rdma.sq.peak_outstanding", attributeOverflow, "true")
		assert.EqualValues(t, 999, highest.IntValue(), "a maximum is not added up")
	}
	assert.LessOrEqual(t, len(b.aggregator.series), 100)
}

func TestExemplarFindsTheSeriesOfItsProcess(t *testing.T) {
	b := newBench(t, theHost().processes, withMetricAttributes(MetricAttributePID, MetricAttributeRank))
	snap := verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 10, 450*time.Microsecond), seriesOf(peer, 10, 450*time.Microsecond)}}
	b.second += 10
	ended, owners := b.aggregator.add(&snap, wallSeconds(b.second))
	e := theEvents(t, false, fullCompletion())[0]
	pending := exemplarOf(&e, b.aggregator.breakdown)
	b.aggregator.addExemplar(pending.key, pending.exemplar)
	found := map[string]int{}
	eachMetric(b.emitter.emit(b.aggregator, ended, owners, wallSeconds(b.second)), func(_ pcommon.Resource, metric pmetric.Metric) {
		if metric.Name() != "rdma.wqe.duration" {
			return
		}
		points := metric.ExponentialHistogram().DataPoints()
		for i := range points.Len() {
			pid, _ := points.At(i).Attributes().Get(attributePID)
			found[pid.AsString()] = points.At(i).Exemplars().Len()
		}
	})
	assert.Equal(t, map[string]int{"4242": 1, "4343": 0}, found)
}

func TestChunks(t *testing.T) {
	var got [][]int
	for run := range chunks([]int{1, 1, 2, 3, 3, 3}, func(a, b int) bool { return a == b }) {
		got = append(got, run)
	}
	assert.Equal(t, [][]int{{1, 1}, {2}, {3, 3, 3}}, got)
	for range chunks([]int(nil), func(int, int) bool { return true }) {
		t.Error("there is nothing to yield")
	}
}

func BenchmarkCollectByQueue(b *testing.B) {
	bench := newBench(b, theHost().processes, withMetricAttributes(metricAttributes()...))
	var snap verbs.Snapshot
	for qpn := range uint32(4096) {
		snap.Queues = append(snap.Queues, queueOf(trainer, qpn))
	}
	for b.Loop() {
		bench.collect(snap)
	}
}
