package baseline

import (
	"sort"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Buckets is how many buckets excess times are counted in, BASELINE_BUCKETS of
// bpf/types.h. Each is as wide as one of verbs.Traffic, two to an octave; the first
// and the last hold also what lies beyond.
const Buckets = 16

// below is the index of the bucket that the threshold is in, BASELINE_BELOW of
// bpf/types.h. Four times the first edge is at most the threshold.
const below = 5

// Edges are the upper edges of the buckets, by the threshold.
func Edges(threshold time.Duration) [Buckets]time.Duration {
	fine := verbs.HistogramEdges()
	at := sort.Search(len(fine)-1, func(i int) bool { return fine[i] >= uint64(threshold) })
	var edges [Buckets]time.Duration
	for i := range edges {
		edges[i] = verbs.QueueBucketEdge(at/4 - below + i)
	}
	return edges
}
