package otlp

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Bucket is one bucket of durations, (Lower, Upper], that is not empty.
type Bucket struct {
	Lower, Upper time.Duration
	Count        uint64
}

// Histogram is an exponential histogram of seconds, its non-empty buckets in
// the order of their edges.
type Histogram struct {
	Count   uint64
	Buckets []Bucket
	// Sum is the total of the durations, Min and Max are the extremes, as
	// exported.
	Sum, Min, Max time.Duration
}

func histogramOf(dp pmetric.ExponentialHistogramDataPoint) *Histogram {
	h := &Histogram{Count: dp.Count(), Sum: seconds(dp.Sum()), Min: seconds(dp.Min()), Max: seconds(dp.Max())}
	if zero := dp.ZeroCount(); zero > 0 {
		h.Buckets = append(h.Buckets, Bucket{Count: zero})
	}
	exponent := math.Exp2(-float64(dp.Scale()))
	for i, count := range dp.Positive().BucketCounts().All() {
		if count == 0 {
			continue
		}
		index := float64(dp.Positive().Offset()) + float64(i)
		h.Buckets = append(h.Buckets, Bucket{
			Lower: seconds(math.Exp2(index * exponent)),
			Upper: seconds(math.Exp2((index + 1) * exponent)),
			Count: count,
		})
	}
	return h
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// add merges another histogram of the same scale.
func (h *Histogram) add(other *Histogram) {
	if other.Count > 0 && (h.Count == 0 || other.Min < h.Min) {
		h.Min = other.Min
	}
	h.Max = max(h.Max, other.Max)
	h.Count += other.Count
	h.Sum += other.Sum
	for _, b := range other.Buckets {
		at, found := slices.BinarySearchFunc(h.Buckets, b, func(x, y Bucket) int { return int(x.Upper - y.Upper) })
		if found {
			h.Buckets[at].Count += b.Count
			continue
		}
		h.Buckets = slices.Insert(h.Buckets, at, b)
	}
}

// Quantile returns the bucket that holds the quantile q of the durations: the
// one with the ceil(q·count)-th smallest.
func (h *Histogram) Quantile(q float64) Bucket {
	rank := max(uint64(math.Ceil(q*float64(h.Count))), 1)
	seen := uint64(0)
	for _, b := range h.Buckets {
		if seen += b.Count; seen >= rank {
			return b
		}
	}
	return Bucket{}
}

// Since returns what was added after an earlier state of the same histogram.
// Min and Max stay those of the whole.
func (h *Histogram) Since(earlier *Histogram) Histogram {
	added := Histogram{Count: h.Count - earlier.Count, Sum: h.Sum - earlier.Sum, Min: h.Min, Max: h.Max}
	before := map[time.Duration]uint64{}
	for _, b := range earlier.Buckets {
		before[b.Upper] = b.Count
	}
	for _, b := range h.Buckets {
		if b.Count -= before[b.Upper]; b.Count > 0 {
			added.Buckets = append(added.Buckets, b)
		}
	}
	return added
}
