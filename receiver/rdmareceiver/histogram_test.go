package rdmareceiver

import (
	"math"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// bucketOf is the bucket that the kernel side would count a duration in.
func bucketOf(d time.Duration) int {
	edges := verbs.HistogramEdges()
	return min(sort.Search(len(edges), func(i int) bool { return uint64(d) <= edges[i] }), len(edges)-1)
}

func sumsOf(durations ...time.Duration) *durationSums {
	sums := &durationSums{}
	for _, d := range durations {
		one := durationSums{sum: d, min: d, max: d}
		one.histogram.Counts[bucketOf(d)] = 1
		sums.add(&one)
	}
	return sums
}

func TestExponentialPointHoldsEveryEdge(t *testing.T) {
	base := math.Exp2(math.Exp2(-verbs.HistogramScale))
	for i, edge := range verbs.HistogramEdges() {
		for _, nanoseconds := range []uint64{edge - 1, edge, edge + 1} {
			d := time.Duration(nanoseconds)
			bucket := bucketOf(d)
			if bucket == 0 || bucket == verbs.HistogramBuckets-1 {
				// What lies outside is counted in the outermost buckets.
				continue
			}
			point := pmetric.NewExponentialHistogramDataPoint()
			fillExponentialPoint(point, sumsOf(d))
			require.Equal(t, 1, point.Positive().BucketCounts().Len(), "edge %d", i)
			k := float64(point.Positive().Offset())
			low, high := math.Pow(base, k), math.Pow(base, k+1)
			// The edges are floors of the true bounds, so that a whole number of
			// nanoseconds is in the right bucket; only their computing is inexact.
			require.Less(t, low*(1-1e-12), d.Seconds(), "edge %d", i)
			require.LessOrEqual(t, d.Seconds(), high*(1+1e-12), "edge %d", i)
		}
	}
}

func TestExponentialPointIsTrimmed(t *testing.T) {
	point := pmetric.NewExponentialHistogramDataPoint()
	fillExponentialPoint(point, sumsOf(time.Microsecond, time.Microsecond, 2*time.Microsecond))
	counts := point.Positive().BucketCounts().AsRaw()
	assert.Equal(t, []uint64{2, 0, 0, 0, 0, 0, 0, 0, 1}, counts, "an octave has eight buckets")
	assert.EqualValues(t, 3, point.Count())
	assert.InDelta(t, 4e-6, point.Sum(), 1e-15)
	assert.InDelta(t, 1e-6, point.Min(), 1e-15)
	assert.InDelta(t, 2e-6, point.Max(), 1e-15)
	assert.EqualValues(t, 3, point.Scale())
}

func TestExplicitCountsAgreeWithTheBounds(t *testing.T) {
	bounds := ExplicitBounds()
	require.True(t, slices.IsSorted(bounds))
	for _, edge := range verbs.HistogramEdges() {
		for _, nanoseconds := range []uint64{edge, edge + 1} {
			d := time.Duration(nanoseconds)
			if bucket := bucketOf(d); bucket == 0 || bucket == verbs.HistogramBuckets-1 {
				continue
			}
			counts := explicitCounts(&sumsOf(d).histogram)
			require.Len(t, counts, len(bounds)+1)
			// OTLP: bucket i holds what is over bound i-1 and at most bound i.
			want := sort.Search(len(bounds), func(i int) bool { return float64(nanoseconds) <= math.Floor(bounds[i]*1e9) })
			require.EqualValues(t, 1, counts[want], "%v", d)
		}
	}
}

func TestExplicitCountsLoseNothing(t *testing.T) {
	h := verbs.Histogram{}
	for i := range h.Counts {
		h.Counts[i] = uint64(i + 1)
	}
	var before, after uint64
	for _, n := range h.Counts {
		before += n
	}
	for _, n := range explicitCounts(&h) {
		after += n
	}
	assert.Equal(t, before, after)
}

func TestDurationSumsKeepTheExtremes(t *testing.T) {
	sums := sumsOf(5*time.Microsecond, 2*time.Microsecond, 9*time.Microsecond)
	sums.add(&durationSums{})
	assert.Equal(t, 2*time.Microsecond, sums.min)
	assert.Equal(t, 9*time.Microsecond, sums.max)
	assert.EqualValues(t, 3, sums.count())
}
