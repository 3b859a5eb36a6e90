package verbs

import "math"

// HistogramScale is the scale of the exponential histogram of durations: the
// base is 2^(2^-3), eight buckets to an octave.
const HistogramScale = 3

// The histogram covers (2^(HistogramMin/8) s, 2^((HistogramMin+HistogramBuckets)/8) s],
// about 119 ns to 512 s; what lies outside is put in the first or last bucket.
const (
	HistogramMin     = -184
	HistogramBuckets = 256
)

// Histogram counts durations. Bucket i holds those in
// (2^((HistogramMin+i)/8), 2^((HistogramMin+i+1)/8)] seconds.
type Histogram struct {
	Counts [HistogramBuckets]uint64
}

// HistogramEdges returns the upper edges in nanoseconds, edge i being that of
// bucket i: floor(2^((HistogramMin+i+1)/8)·10⁹). A whole number of
// nanoseconds is at most the edge exactly when it is at most its floor.
func HistogramEdges() [HistogramBuckets]uint64 {
	var edges [HistogramBuckets]uint64
	for i := range edges {
		exponent := float64(HistogramMin+i+1) / 8
		edges[i] = uint64(math.Floor(math.Exp2(exponent) * 1e9))
	}
	return edges
}
