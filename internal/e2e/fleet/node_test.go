//go:build backends

package fleet

import (
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	// recording has two collections of the node of docs/cost.md, one after the
	// other. A test of the receiver writes it and holds its code against it.
	recording = "../../../receiver/rdmareceiver/testdata/golden/cost-node.pb.gz"

	interval = 10 * time.Second
	// nodesOfJob run the same job: the same service in the same Slurm job.
	nodesOfJob = 50
	// firstJob is the Slurm job on the first of the nodes.
	firstJob = 81512
	// jitter is how far the growth of a value lies from that of the recording, at
	// the most.
	jitter = 0.2
	// slower is by how many buckets the planted device is slower than it was: eight
	// of them are a factor of two.
	slower = 24
)

// growth is of one point: what it was in the recording, and by how much it grew in an
// interval. The buckets are those of a histogram.
type growth struct {
	was, by float64
	buckets []uint64
}

// node exports what the recorded one does, under another name and with other values.
type node struct {
	name    string
	metrics pmetric.Metrics
	// growths are those of all points, in their order.
	growths []growth
	random  *rand.Rand
}

// readRecording returns the later of the two collections, and what grew since the
// earlier one.
func readRecording(t *testing.T) (pmetric.Metrics, []growth) {
	t.Helper()
	file, err := os.Open(recording)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	content, err := io.ReadAll(unzipped)
	require.NoError(t, err)
	both, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(content)
	require.NoError(t, err)
	earlier, later := pmetric.NewMetrics(), pmetric.NewMetrics()
	half := both.ResourceMetrics().Len() / 2
	for i, resource := range both.ResourceMetrics().All() {
		to := earlier
		if i >= half {
			to = later
		}
		resource.CopyTo(to.ResourceMetrics().AppendEmpty())
	}
	return later, growthsOf(t, earlier, later)
}

func growthsOf(t *testing.T, earlier, later pmetric.Metrics) []growth {
	t.Helper()
	before := map[string]growth{}
	eachPoint(earlier, func(at point) { before[at.key()] = now(at) })
	var all []growth
	eachPoint(later, func(at point) {
		key := at.key()
		was, found := before[key]
		require.True(t, found, "%s is in one of two collections", key)
		is := now(at)
		is.by = is.was - was.was
		require.GreaterOrEqual(t, len(is.buckets), len(was.buckets), key)
		for i, count := range was.buckets {
			is.buckets[i] -= count
		}
		all = append(all, is)
	})
	return all
}

// point is one of a metric. One of number and histogram is set.
type point struct {
	metric     string
	cumulative bool
	resource   pcommon.Map
	attributes pcommon.Map
	number     pmetric.NumberDataPoint
	histogram  pmetric.ExponentialHistogramDataPoint
	isNumber   bool
}

// now is a point as it is, that has not grown.
func now(at point) growth {
	switch {
	case !at.isNumber:
		return growth{was: at.histogram.Sum(), buckets: at.histogram.Positive().BucketCounts().AsRaw()}
	case at.number.ValueType() == pmetric.NumberDataPointValueTypeInt:
		return growth{was: float64(at.number.IntValue())}
	default:
		return growth{was: at.number.DoubleValue()}
	}
}

// key tells a point from the others of a collection.
func (p point) key() string {
	return fmt.Sprint(p.metric, " ", p.resource.AsRaw(), p.attributes.AsRaw())
}

// eachPoint calls use for every point.
func eachPoint(metrics pmetric.Metrics, use func(point)) {
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				eachPointOf(metric, func(at point) {
					at.resource, at.metric = resource.Resource().Attributes(), metric.Name()
					use(at)
				})
			}
		}
	}
}

func eachPointOf(metric pmetric.Metric, use func(point)) {
	numbers := func(points pmetric.NumberDataPointSlice, cumulative bool) {
		for _, p := range points.All() {
			use(point{cumulative: cumulative, attributes: p.Attributes(), number: p, isNumber: true})
		}
	}
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		numbers(metric.Gauge().DataPoints(), false)
	case pmetric.MetricTypeSum:
		numbers(metric.Sum().DataPoints(), metric.Sum().IsMonotonic())
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range metric.ExponentialHistogram().DataPoints().All() {
			use(point{cumulative: true, attributes: p.Attributes(), histogram: p})
		}
	default:
		panic("the recording has a " + metric.Type().String() + ", " + metric.Name())
	}
}

func hostName(number int) string { return fmt.Sprintf("gpu-%04d", number) }

// deviceName is that of a device of the recording on a node: every other job runs
// where udev names them otherwise.
func deviceName(number int, recorded string) string {
	if number/nodesOfJob%2 == 0 {
		return recorded
	}
	return strings.Replace(recorded, "mlx5_", "rocep", 1)
}

// newNode makes the node of that number. All of them boot from one image, and so have
// the same host.id; those of a job have the same service, Slurm job and devices.
func newNode(number int, recorded pmetric.Metrics, growths []growth) *node {
	n := &node{
		name: hostName(number), metrics: pmetric.NewMetrics(), growths: growths,
		random: rand.New(rand.NewPCG(uint64(number), 0)),
	}
	recorded.CopyTo(n.metrics)
	for _, resource := range n.metrics.ResourceMetrics().All() {
		attributes := resource.Resource().Attributes()
		attributes.PutStr("host.name", n.name)
		if instance, found := attributes.Get("service.instance.id"); found {
			instance.SetStr(instance.Str() + "/" + n.name)
		}
		if job, found := attributes.Get("slurm.job.id"); found {
			job.SetStr(fmt.Sprint(firstJob + number/nodesOfJob))
		}
	}
	eachPoint(n.metrics, func(at point) {
		if device, found := at.attributes.Get("rdma.device.name"); found {
			device.SetStr(deviceName(number, device.Str()))
		}
	})
	return n
}

// slow makes what is timed on a device as many times slower as slower says.
func (n *node) slow(device string) {
	eachPoint(n.metrics, func(at point) {
		if name, found := at.attributes.Get("rdma.device.name"); found && name.Str() == device && !at.isNumber {
			at.histogram.Positive().SetOffset(at.histogram.Positive().Offset() + slower)
		}
	})
}

// collect lets the values grow as in an interval, and returns what is exported then.
func (n *node) collect(at time.Time) pmetric.Metrics {
	i := 0
	eachPoint(n.metrics, func(p point) {
		if p.isNumber {
			p.number.SetTimestamp(pcommon.NewTimestampFromTime(at))
			n.grow(p, n.growths[i])
		} else {
			p.histogram.SetTimestamp(pcommon.NewTimestampFromTime(at))
			n.growHistogram(p.histogram, n.growths[i])
		}
		i++
	})
	return n.metrics
}

// begin sets when what is cumulative began.
func (n *node) begin(at time.Time) {
	eachPoint(n.metrics, func(p point) {
		if p.isNumber {
			p.number.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
		} else {
			p.histogram.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
		}
	})
}

// varied is a number about as large.
func (n *node) varied(number float64) float64 { return number * (1 + jitter*(2*n.random.Float64()-1)) }

// grow lets a number grow on if it is cumulative; any other that moved in the
// recording moves about.
func (n *node) grow(p point, g growth) {
	is, by := now(p).was, n.varied(g.by)
	if !p.cumulative {
		is, by = g.was, g.by*(2*n.random.Float64()-1)
	}
	if p.number.ValueType() == pmetric.NumberDataPointValueTypeInt {
		p.number.SetIntValue(int64(math.Round(max(is+by, 0))))
		return
	}
	p.number.SetDoubleValue(max(is+by, 0))
}

func (n *node) growHistogram(p pmetric.ExponentialHistogramDataPoint, g growth) {
	counts, total := p.Positive().BucketCounts(), p.ZeroCount()
	for i := range counts.Len() {
		counts.SetAt(i, counts.At(i)+uint64(n.varied(float64(g.buckets[i]))+n.random.Float64()))
		total += counts.At(i)
	}
	p.SetCount(total)
	p.SetSum(p.Sum() + n.varied(g.by))
}
