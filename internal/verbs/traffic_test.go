package verbs

import (
	"testing"
	"time"
)

// An edge of a queue's buckets is that of every fourth bucket of a series.
func TestQueueBucketEdges(t *testing.T) {
	edges := HistogramEdges()
	for i := range QueueBuckets {
		if got, want := QueueBucketEdge(i), time.Duration(edges[4*i+3]); got != want {
			t.Errorf("bucket %d ends at %d, want %d", i, got, want)
		}
	}
}
