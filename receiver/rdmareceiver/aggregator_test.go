package rdmareceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// bench is an aggregator and what turns it into pdata.
type bench struct {
	aggregator *aggregator
	emitter    *metricsEmitter
	second     int64
}

func newBench(t testing.TB, source processSource, change func(*Config)) *bench {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	who := func(id verbs.ProcessID) *identity { return identify(source, id, zap.NewNop()) }
	errno := func(errno uint32) string { return map[uint32]string{12: "ENOMEM", 22: "EINVAL"}[errno] }
	return &bench{
		aggregator: newAggregator(cfg, who, errno, wallSeconds(0)),
		emitter:    newMetricsEmitter(cfg, receivertest.NewNopSettings(metadata.Type), theSurroundings()),
	}
}

// collect emits a snapshot ten seconds after the one before.
func (b *bench) collect(snap verbs.Snapshot) pmetric.Metrics {
	b.second += 10
	now := wallSeconds(b.second)
	ended, owners := b.aggregator.add(&snap, now)
	return b.emitter.emit(b.aggregator, ended, owners, now)
}

// seriesOf is what a process did, every completion taking d.
func seriesOf(id verbs.ProcessID, n uint64, d time.Duration) verbs.Series {
	s := verbs.Series{
		Key:         verbs.SeriesKey{Process: id, Device: "mlx5_0", Operation: verbs.OpRDMAWrite},
		Completions: n, Timed: n, Requests: 2 * n, Bytes: 4096 * n,
		Sum: time.Duration(n) * d, Min: d, Max: d, Slow: n / 2, Excess: time.Duration(n/2) * d / 2,
	}
	s.Durations.Counts[bucketOf(d)] = n
	s.StageTime[verbs.StagePost] = s.Sum / 10
	s.StageTime[verbs.StageDevice] = s.Sum - s.Sum/10
	return s
}

func queueOf(id verbs.ProcessID, qpn uint32) verbs.QueueInfo {
	return verbs.QueueInfo{
		ID: verbs.QueueID{Process: id, QPNumber: qpn}, Type: 2, Device: "mlx5_0", Port: 1, State: verbs.QueueSynced,
		Outstanding: 8, Peak: 64, Limit: 128, Oldest: 3 * time.Millisecond, RecvOutstanding: 16, RecvKnown: true,
	}
}

// fullSnapshot has a value for every metric.
func fullSnapshot() verbs.Snapshot {
	failed := seriesOf(trainer, 2, 4*time.Second)
	failed.Key.Status, failed.Key.Operation, failed.Key.Device = verbs.Status(12), verbs.OpSend, "mlx5_1"
	read := seriesOf(peer, 10, 3*time.Microsecond)
	read.Key.Operation = verbs.OpRDMARead
	received := verbs.Series{
		Key:         verbs.SeriesKey{Process: trainer, Device: "mlx5_0", Operation: verbs.OpRecv},
		Completions: 100, Requests: 100, Bytes: 6400,
	}
	unsynced := queueOf(peer, 2)
	unsynced.State, unsynced.RecvKnown, unsynced.Limit = verbs.QueueUnsynced, false, 0
	return verbs.Snapshot{
		Series:          []verbs.Series{seriesOf(trainer, 100, 2*time.Microsecond), seriesOf(peer, 40, 500*time.Microsecond), failed, read, received},
		Queues:          []verbs.QueueInfo{queueOf(trainer, 1), queueOf(peer, 1), unsynced},
		UntrackedQueues: 3,
		Rejected: []verbs.RejectedPosts{
			{Process: trainer, Device: "mlx5_0", Errno: 12, Count: 7},
			{Process: trainer, Device: "mlx5_0", Errno: 0, Count: 3},
		},
		Empty: []verbs.ReceiveEmpty{{Process: trainer, Device: "mlx5_0", Count: 5}},
		Registrations: []verbs.Registrations{
			{
				Process: trainer, Device: "mlx5_0", Kind: verbs.MemoryDMABuf, Count: 20, Bytes: 20 << 20, Time: 3 * time.Millisecond,
				DeregistrationTime: time.Millisecond, Regions: 12, RegionBytes: 12 << 20,
			},
			{Process: trainer, Device: "mlx5_0", Kind: verbs.MemoryHost, Errno: 12, Count: 2, Time: time.Millisecond},
			{Process: trainer, Device: "mlx5_0", Regions: 3, RegionBytes: 4096},
		},
		Probes: []verbs.ProbeInfo{
			{Library: "/usr/lib/libmlx5.so.1", Provider: "mlx5", Functions: []string{"poll_cq"}, Mode: "site", Used: true, Observed: 1},
			{Library: "/usr/lib/libmlx5.so.1", Provider: "mlx5", Functions: []string{"post_send", "post_recv"}, Mode: "windows", Used: true, Observed: 1},
			// Another file of the same provider, in a container.
			{Library: "/mnt/libmlx5.so.1", Provider: "mlx5", Functions: []string{"poll_cq"}, Mode: "windows", Used: true, Observed: 0.1},
			{Library: "/usr/lib/libefa.so.1", Provider: "efa", Functions: []string{"poll_cq"}, Mode: "windows", Observed: 1},
		},
	}
}

// The modes of functions add up over the files of a provider, the share is that
// of the file that is seen least; a provider that nobody uses says nothing.
func TestProbesOfProvidersInUse(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	b.collect(fullSnapshot())
	got := b.collect(fullSnapshot())
	for mode, want := range map[string]int64{"site": 1, "windows": 1} {
		assert.Equal(t, want, value(t, got, "rdma.probe.mode", "rdma.provider.name", "mlx5", "rdma.probe.function", "poll_cq", "rdma.probe.mode", mode).IntValue())
	}
	assert.InDelta(t, 0.1, value(t, got, "rdma.probe.observed_share", "rdma.provider.name", "mlx5").DoubleValue(), 0)
	assert.Empty(t, values(got, "rdma.probe.mode", "rdma.provider.name", "efa"))
	assert.Empty(t, values(got, "rdma.probe.observed_share", "rdma.provider.name", "efa"))
}

func TestMetricsGolden(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	b.collect(fullSnapshot())
	requireGoldenMetrics(t, "metrics", b.collect(fullSnapshot()))
}

func TestMetricsExplicitGolden(t *testing.T) {
	b := newBench(t, theHost().processes, func(c *Config) { c.Histogram = HistogramExplicit })
	requireGoldenMetrics(t, "metrics-explicit", b.collect(fullSnapshot()))
}

func TestMetricsEndedGolden(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	b.collect(fullSnapshot())
	requireGoldenMetrics(t, "metrics-ended", b.collect(verbs.Snapshot{}))
}

// value finds the one point of a metric that has all the attributes.
func value(t testing.TB, metrics pmetric.Metrics, name string, attributes ...string) pmetric.NumberDataPoint {
	t.Helper()
	points := values(metrics, name, attributes...)
	require.Len(t, points, 1, "%s %v", name, attributes)
	return points[0]
}

func values(metrics pmetric.Metrics, name string, attributes ...string) []pmetric.NumberDataPoint {
	var found []pmetric.NumberDataPoint
	eachMetric(metrics, func(_ pcommon.Resource, metric pmetric.Metric) {
		if metric.Name() != name {
			return
		}
		eachPoint(metric, func(at dataPoint) {
			if number, ok := at.(pmetric.NumberDataPoint); ok && hasAll(number.Attributes(), attributes) {
				found = append(found, number)
			}
		})
	})
	return found
}

func hasAll(in pcommon.Map, pairs []string) bool {
	for i := 0; i < len(pairs); i += 2 {
		if v, ok := in.Get(pairs[i]); !ok || v.AsString() != pairs[i+1] {
			return false
		}
	}
	return true
}

func eachMetric(metrics pmetric.Metrics, f func(pcommon.Resource, pmetric.Metric)) {
	for i := range metrics.ResourceMetrics().Len() {
		rm := metrics.ResourceMetrics().At(i)
		for j := range rm.ScopeMetrics().Len() {
			for k := range rm.ScopeMetrics().At(j).Metrics().Len() {
				f(rm.Resource(), rm.ScopeMetrics().At(j).Metrics().At(k))
			}
		}
	}
}

func TestExitedProcessStaysInTheSums(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	both := verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 100, time.Microsecond), seriesOf(peer, 40, time.Microsecond)}}
	b.collect(both)
	last := verbs.Snapshot{
		Series: []verbs.Series{seriesOf(trainer, 110, time.Microsecond), seriesOf(peer, 45, time.Microsecond)},
		Exited: []verbs.ProcessID{peer},
	}
	b.collect(last)
	got := b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 120, time.Microsecond)}})
	assert.EqualValues(t, 120+45, value(t, got, "rdma.wqe.completions").IntValue())
	assert.EqualValues(t, 4096*(120+45), value(t, got, "rdma.io").IntValue())
	assert.InDelta(t, (120+45)*1e-7, value(t, got, "rdma.wqe.stage.time", "rdma.wqe.stage", "post").DoubleValue(), 1e-12)
	eachMetric(got, func(_ pcommon.Resource, metric pmetric.Metric) {
		if metric.Name() == "rdma.wqe.duration" {
			require.Equal(t, 1, metric.ExponentialHistogram().DataPoints().Len())
			assert.EqualValues(t, 120+45, metric.ExponentialHistogram().DataPoints().At(0).Count())
		}
	})
}

func TestRestartedJobMakesNoNewSeries(t *testing.T) {
	processes := theHost().processes.(listedProcesses)
	restarted := verbs.ProcessID{TGID: 5000, Incarnation: 99}
	facts := processes[trainer]
	facts.PID = 5000
	processes[restarted] = facts
	b := newBench(t, processes, nil)
	before := b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 100, time.Microsecond)}, Exited: []verbs.ProcessID{trainer}})
	b.collect(verbs.Snapshot{})
	after := b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(restarted, 10, time.Microsecond)}})
	assert.Equal(t, before.DataPointCount(), after.DataPointCount())
	point := value(t, after, "rdma.wqe.completions")
	assert.EqualValues(t, 110, point.IntValue())
	assert.Equal(t, value(t, before, "rdma.wqe.completions").StartTimestamp(), point.StartTimestamp())
	one, _ := before.ResourceMetrics().At(0).Resource().Attributes().Get("service.instance.id")
	other, _ := after.ResourceMetrics().At(0).Resource().Attributes().Get("service.instance.id")
	assert.Equal(t, one.Str(), other.Str())
}

// Accounting goes by the step, k8sattributes by the container: what differs in either
// has a resource and an instance of its own, which Prometheus tells apart.
func TestStepsAndContainersAreApart(t *testing.T) {
	for name, change := range map[string]func(*process.Facts){
		"step":      func(f *process.Facts) { f.SlurmStepID = "1" },
		"container": func(f *process.Facts) { f.ContainerID = strings.Repeat("b", 64) },
	} {
		t.Run(name, func(t *testing.T) {
			processes := theHost().processes.(listedProcesses)
			facts := processes[peer]
			change(&facts)
			processes[peer] = facts
			b := newBench(t, processes, nil)
			got := b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 100, time.Microsecond), seriesOf(peer, 10, time.Microsecond)}})
			require.Equal(t, 2, got.ResourceMetrics().Len())
			seen := map[string]bool{}
			for _, resource := range got.ResourceMetrics().All() {
				attributes := resource.Resource().Attributes()
				instance, _ := attributes.Get("service.instance.id")
				step, _ := attributes.Get("slurm.step.id")
				container, _ := attributes.Get("container.id")
				seen[instance.Str()] = true
				seen[step.Str()+" "+container.Str()] = true
			}
			assert.Len(t, seen, 4, "two instances, two pairs: %v", seen)
		})
	}
}

func TestCounterThatWentBackStartsAnew(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 100, time.Microsecond)}})
	got := b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 30, time.Microsecond)}})
	assert.EqualValues(t, 130, value(t, got, "rdma.wqe.completions").IntValue())
}

// What is counted on a device that was given up and came back begins at 0, also where
// there is more of it than before by the next snapshot.
func TestDeviceThatCameBackStartsAnew(t *testing.T) {
	counted := func(n uint64) verbs.Snapshot {
		return verbs.Snapshot{
			Series:   []verbs.Series{seriesOf(trainer, n, time.Microsecond)},
			Rejected: []verbs.RejectedPosts{{Process: trainer, Device: "mlx5_0", Errno: 12, Count: n}},
			Empty:    []verbs.ReceiveEmpty{{Process: trainer, Device: "mlx5_0", Count: n}},
		}
	}
	for name, test := range map[string]struct {
		gone []string
		want int64
	}{
		"given up":       {[]string{"mlx5_1", "mlx5_0"}, 100 + 130},
		"another one is": {[]string{"mlx5_1"}, 130},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, theHost().processes, nil)
			last := counted(100)
			last.GoneDevices = test.gone
			b.collect(last)
			metrics := b.collect(counted(130))
			for _, metric := range []string{"rdma.wqe.completions", "rdma.sq.rejected_posts", "rdma.rq.empty"} {
				assert.Equal(t, test.want, value(t, metrics, metric).IntValue(), metric)
			}
		})
	}
}

func TestDevicesWithoutANameAddUp(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	nameless := func(n uint64, d time.Duration) verbs.Series {
		s := seriesOf(trainer, n, d)
		s.Key.Device = ""
		return s
	}
	twice := func(n uint64) verbs.Snapshot {
		return verbs.Snapshot{
			Series: []verbs.Series{nameless(n, 3*time.Microsecond), nameless(2*n, time.Microsecond)},
			Rejected: []verbs.RejectedPosts{
				{Process: trainer, Errno: 12, Count: n}, {Process: trainer, Errno: 12, Count: 2 * n},
			},
			Empty: []verbs.ReceiveEmpty{{Process: trainer, Count: n}, {Process: trainer, Count: 2 * n}},
		}
	}
	b.collect(twice(100))
	got := b.collect(twice(110))
	completions := value(t, got, "rdma.wqe.completions")
	assert.EqualValues(t, 330, completions.IntValue())
	_, named := completions.Attributes().Get(attributeDevice)
	assert.False(t, named)
	assert.EqualValues(t, 330, value(t, got, "rdma.sq.rejected_posts").IntValue())
	assert.EqualValues(t, 330, value(t, got, "rdma.rq.empty").IntValue())
	eachMetric(got, func(_ pcommon.Resource, metric pmetric.Metric) {
		if metric.Name() == "rdma.wqe.duration" {
			point := metric.ExponentialHistogram().DataPoints().At(0)
			assert.EqualValues(t, 330, point.Count())
			assert.InDelta(t, 1e-6, point.Min(), 1e-12)
			assert.InDelta(t, 3e-6, point.Max(), 1e-12)
		}
	})
}

func TestVanishedSeriesEndsWithOnePoint(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	b.collect(verbs.Snapshot{Queues: []verbs.QueueInfo{queueOf(trainer, 1)}})
	got := b.collect(verbs.Snapshot{})
	point := value(t, got, "rdma.sq.outstanding")
	assert.True(t, point.Flags().NoRecordedValue())
	assert.Empty(t, values(b.collect(verbs.Snapshot{}), "rdma.sq.outstanding"))
}

func TestJobEndsLongAfterItsLastProcess(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 100, time.Microsecond)}})
	b.second += int64(jobRetention/time.Second) - 20
	got := b.collect(verbs.Snapshot{})
	assert.False(t, value(t, got, "rdma.wqe.completions").Flags().NoRecordedValue())
	b.collect(verbs.Snapshot{})
	got = b.collect(verbs.Snapshot{})
	assert.True(t, value(t, got, "rdma.wqe.completions").Flags().NoRecordedValue())
	assert.Empty(t, b.aggregator.series)
	assert.Empty(t, b.aggregator.owners)
	assert.Zero(t, b.collect(verbs.Snapshot{}).DataPointCount())

	// When it comes back its counters start at 0, with a new start.
	got = b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(peer, 5, time.Microsecond)}})
	point := value(t, got, "rdma.wqe.completions")
	assert.EqualValues(t, 5, point.IntValue())
	assert.Equal(t, wallSeconds(b.second-10), point.StartTimestamp())
}

func TestStartIsNeverAfterThePoint(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 100, time.Microsecond)}})
	// The wall clock is set back to before the receiver started.
	b.second = -1000
	got := b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 100, time.Microsecond)}})
	point := value(t, got, "rdma.wqe.completions")
	assert.LessOrEqual(t, point.StartTimestamp(), point.Timestamp())
}

// manyServices are processes that each belong to a service of their own.
type manyServices struct{}

func (manyServices) Capture(verbs.ProcessID, string) {}

func (manyServices) Facts(id verbs.ProcessID) (process.Facts, error) {
	return process.Facts{PID: int(id.TGID), Executable: "app", ServiceName: fmt.Sprintf("service-%d", id.TGID)}, nil
}

func TestSeriesOverTheBoundAreFolded(t *testing.T) {
	b := newBench(t, manyServices{}, func(c *Config) { c.MaxSeries = 100 })
	var snap verbs.Snapshot
	for pid := range uint32(200) {
		id := verbs.ProcessID{TGID: pid + 1}
		snap.Series = append(snap.Series, seriesOf(id, 10, time.Microsecond))
		snap.Queues = append(snap.Queues, queueOf(id, 1))
	}
	for range 3 {
		got := b.collect(snap)
		assert.LessOrEqual(t, got.DataPointCount(), 100)
		folded := value(t, got, "rdma.wqe.completions", attributeOverflow, "true")
		assert.Equal(t, 1, folded.Attributes().Len())
		var total, outstanding int64
		for _, point := range values(got, "rdma.wqe.completions") {
			total += point.IntValue()
		}
		for _, point := range values(got, "rdma.sq.outstanding") {
			outstanding += point.IntValue()
		}
		assert.EqualValues(t, 200*10, total, "folding loses nothing")
		assert.EqualValues(t, 200*8, outstanding, "folding loses nothing")
	}
	// Jobs that have ended make room for those that have not.
	fresh := verbs.ProcessID{TGID: 1000}
	b.collect(verbs.Snapshot{Exited: []verbs.ProcessID{}})
	got := b.collect(verbs.Snapshot{Series: []verbs.Series{seriesOf(fresh, 3, time.Microsecond)}})
	var own bool
	eachMetric(got, func(resource pcommon.Resource, metric pmetric.Metric) {
		service, _ := resource.Attributes().Get("service.name")
		own = own || service.Str() == "service-1000" && metric.Name() == "rdma.wqe.completions"
	})
	assert.True(t, own)
}

func TestDroppedAttributeAddsUp(t *testing.T) {
	b := newBench(t, theHost().processes, func(c *Config) {
		c.Metrics.RdmaWqeCompletions.EnabledAttributes = nil
		c.Metrics.RdmaSqPeakOutstanding.EnabledAttributes = nil
		c.Metrics.RdmaIo.Enabled = false
	})
	snap := fullSnapshot()
	other := queueOf(trainer, 5)
	other.Device, other.Peak = "mlx5_1", 100
	snap.Queues = append(snap.Queues, other)
	got := b.collect(snap)
	assert.EqualValues(t, 100, value(t, got, "rdma.sq.peak_outstanding").IntValue(), "a maximum of maxima")
	assert.Empty(t, values(got, "rdma.io"))

	// One device goes: the series that both made lives on.
	got = b.collect(fullSnapshot())
	point := value(t, got, "rdma.sq.peak_outstanding")
	assert.False(t, point.Flags().NoRecordedValue())
	assert.EqualValues(t, 64, point.IntValue())
}

func TestExemplarsAreExportedOnce(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	snap := verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 10, 450*time.Microsecond)}}
	b.second += 10
	ended, owners := b.aggregator.add(&snap, wallSeconds(b.second))
	e := theEvents(t, false, fullCompletion())[0]
	pending := exemplarOf(&e, breakdown{})
	for range 2 * maxExemplars {
		b.aggregator.addExemplar(pending.key, pending.exemplar)
	}
	count := func(metrics pmetric.Metrics) (n int) {
		eachMetric(metrics, func(_ pcommon.Resource, metric pmetric.Metric) {
			if metric.Name() != "rdma.wqe.duration" {
				return
			}
			exemplars := metric.ExponentialHistogram().DataPoints().At(0).Exemplars()
			for i := range exemplars.Len() {
				assert.Equal(t, e.traceID, exemplars.At(i).TraceID())
				assert.Equal(t, e.spanID, exemplars.At(i).SpanID())
				assert.InDelta(t, 450e-6, exemplars.At(i).DoubleValue(), 1e-12)
			}
			n += exemplars.Len()
		})
		return n
	}
	assert.Equal(t, maxExemplars, count(b.emitter.emit(b.aggregator, ended, owners, wallSeconds(b.second))))
	assert.Zero(t, count(b.collect(snap)))

	// An exemplar of what the histogram does not have is dropped.
	pending.key.device = "mlx5_9"
	b.aggregator.addExemplar(pending.key, pending.exemplar)
	assert.Zero(t, count(b.collect(snap)))
}

func TestUnsyncedQueuesHaveNoDepth(t *testing.T) {
	b := newBench(t, theHost().processes, nil)
	q := queueOf(trainer, 1)
	q.State, q.RecvKnown, q.Limit = verbs.QueueUnsynced, false, 0
	got := b.collect(verbs.Snapshot{Queues: []verbs.QueueInfo{q}})
	assert.EqualValues(t, 1, value(t, got, "rdma.queues", "rdma.queue.state", "unsynced").IntValue())
	assert.Equal(t, 1, got.DataPointCount(), "nothing else is known of it")
}

func BenchmarkCollect(b *testing.B) {
	bench := newBench(b, manyServices{}, nil)
	var snap verbs.Snapshot
	for pid := range uint32(64) {
		id := verbs.ProcessID{TGID: pid + 1}
		for device := range 8 {
			s := seriesOf(id, 10, time.Microsecond)
			s.Key.Device = fmt.Sprintf("mlx5_%d", device)
			snap.Series = append(snap.Series, s)
			q := queueOf(id, uint32(device))
			q.Device = s.Key.Device
			snap.Queues = append(snap.Queues, q)
		}
	}
	for b.Loop() {
		bench.collect(snap)
	}
}
