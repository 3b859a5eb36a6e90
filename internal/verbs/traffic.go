package verbs

import (
	"math"
	"time"
)

// QueueBuckets is how many buckets the durations of one queue are counted in: a
// quarter of those of a series, two to an octave.
const QueueBuckets = HistogramBuckets / 4

// Traffic is what went over one queue, cumulative since it was first seen.
type Traffic struct {
	// Generation tells apart queues that had the same QueueID one after the other.
	Generation uint64
	// Bytes is the payload of the completed sends, writes, reads and atomics.
	// Receives are not in it.
	Bytes uint64
	// Slow counts the timed completions over their limit.
	Slow uint64
	// Durations counts the timed completions. Bucket i holds what the buckets 4i
	// to 4i+3 of a Histogram do. A count wraps at 2^32, and so only differences
	// mean something.
	Durations [QueueBuckets]uint32
}

// QueueBucketEdge is the upper edge of bucket i of Traffic.Durations.
func QueueBucketEdge(i int) time.Duration {
	exponent := float64(HistogramMin+4*(i+1)) / 8
	return time.Duration(math.Exp2(exponent) * 1e9)
}
