package rdmareceiver

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// histogramMetric describes a metric that metadata.yaml cannot, because mdatagen
// generates sums and gauges only.
type histogramMetric struct {
	Name, Description, Unit string
	// Attributes are the names of the attributes of its points.
	Attributes []string
}

// histogramMetrics is the whole of the histograms that the receiver emits.
func histogramMetrics() map[instrument]histogramMetric {
	return map[instrument]histogramMetric{
		wqeDuration: {
			Name:        "rdma.wqe.duration",
			Description: "From the entry of post to the delivery of the completion, of timed completions.",
			Unit:        "s",
			Attributes:  []string{attributeDevice, attributeOperation, attributeErrorType},
		},
	}
}

// explicitOctaves are the first and the last power of two of ExplicitBounds.
const (
	explicitFirst = -20
	explicitLast  = 4
)

// ExplicitBounds returns the bounds of `histogram: explicit` in seconds: the
// powers of two from 2^-20 (0.95 µs) to 2^4 (16 s). They are edges of the
// exponential histogram too, so that no count has to be guessed.
func ExplicitBounds() []float64 {
	var bounds []float64
	for k := explicitFirst; k <= explicitLast; k++ {
		bounds = append(bounds, math.Exp2(float64(k)))
	}
	return bounds
}

// bucketsPerOctave is how many buckets of the exponential histogram lie between
// two powers of two.
const bucketsPerOctave = 1 << verbs.HistogramScale

// explicitCounts returns the counts for ExplicitBounds, one more than there are
// bounds.
func explicitCounts(h *verbs.Histogram) []uint64 {
	counts := make([]uint64, explicitLast-explicitFirst+2)
	for i, n := range h.Counts {
		// Bucket i ends at 2^(upper/8) seconds, inclusive.
		upper := verbs.HistogramMin + i + 1
		octave := ceilDivide(upper, bucketsPerOctave)
		counts[min(max(octave-explicitFirst, 0), len(counts)-1)] += n
	}
	return counts
}

func ceilDivide(a, b int) int {
	return int(math.Ceil(float64(a) / float64(b)))
}

func fillExponentialPoint(point pmetric.ExponentialHistogramDataPoint, d *durationSums) {
	point.SetScale(verbs.HistogramScale)
	point.SetCount(d.count())
	point.SetSum(secondsOf(d.sum))
	point.SetMin(secondsOf(d.min))
	point.SetMax(secondsOf(d.max))
	first, last := filled(&d.histogram)
	// Bucket k of OTLP is (base^k, base^(k+1)] with the base 2^(2^-scale).
	point.Positive().SetOffset(int32(verbs.HistogramMin + first))
	point.Positive().BucketCounts().FromRaw(d.histogram.Counts[first : last+1])
}

// filled returns the first and the last bucket that are not empty.
func filled(h *verbs.Histogram) (first, last int) {
	first = -1
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	return max(first, 0), last
}

func fillExplicitPoint(point pmetric.HistogramDataPoint, d *durationSums) {
	point.SetCount(d.count())
	point.SetSum(secondsOf(d.sum))
	point.SetMin(secondsOf(d.min))
	point.SetMax(secondsOf(d.max))
	point.ExplicitBounds().FromRaw(ExplicitBounds())
	point.BucketCounts().FromRaw(explicitCounts(&d.histogram))
}

// histogramPoint is what both kinds of points have in common.
type histogramPoint interface {
	Attributes() pcommon.Map
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
	Exemplars() pmetric.ExemplarSlice
}
