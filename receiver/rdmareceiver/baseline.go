package rdmareceiver

import (
	"math"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// minBaseline is how many work requests tell what is normal on a queue pair.
const minBaseline = 100

// baselineOf is what is normal on a queue pair: of all that it has completed so
// far, whatever its size. It is within a fifth, because durations of single queues
// are counted in two buckets to an octave. It is nil while there are few.
func baselineOf(q *verbs.QueueInfo) *diagnose.Baseline {
	t := &q.Traffic
	total := uint64(0)
	for _, n := range t.Durations {
		total += uint64(n)
	}
	if total < minBaseline {
		return nil
	}
	return &diagnose.Baseline{
		Median: quantile(&t.Durations, (total+1)/2), P99: quantile(&t.Durations, total-total/100), Samples: total,
		Requests: float64(q.Posted) / float64(total),
	}
}

// quantile is the middle of the bucket that holds the completion with that rank.
func quantile(durations *[verbs.QueueBuckets]uint32, rank uint64) time.Duration {
	passed := uint64(0)
	for i, n := range durations {
		if passed += uint64(n); passed >= rank {
			return time.Duration(float64(verbs.QueueBucketEdge(i)) / math.Pow(2, 0.25))
		}
	}
	return verbs.QueueBucketEdge(verbs.QueueBuckets - 1)
}
