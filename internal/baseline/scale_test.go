package baseline

import (
	"testing"
	"time"
)

// The threshold is in the bucket that the kernel side takes for it, and what is in the
// first bucket, four times over, is not above it.
func TestThresholdIsInItsBucket(t *testing.T) {
	for _, threshold := range []time.Duration{
		time.Microsecond, 50 * time.Microsecond, 61035 * time.Nanosecond, 61036 * time.Nanosecond, 5 * time.Millisecond, time.Minute,
	} {
		edges := Edges(threshold)
		if threshold <= edges[below-1] || threshold > edges[below] {
			t.Errorf("%v is not in (%v, %v]", threshold, edges[below-1], edges[below])
		}
		if Multiple*edges[0] > threshold {
			t.Errorf("%v: %d times %v is more", threshold, Multiple, edges[0])
		}
		if last := edges[Buckets-2]; last <= Ceiling*threshold {
			t.Errorf("%v: the last bucket begins at %v, below the ceiling", threshold, last)
		}
	}
}
