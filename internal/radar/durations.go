package radar

import "github.com/rdmaradar/rdmaradar/internal/verbs"

// durations counts timed completions by duration.
type durations [verbs.QueueBuckets]uint64

// addIncrease adds what was timed between two moments. Counts wrap, and so does
// their difference.
func (d *durations) addIncrease(now, then *verbs.Traffic) {
	for i := range d {
		d[i] += uint64(now.Durations[i] - then.Durations[i])
	}
}

func (d *durations) total() (n uint64) {
	for _, count := range d {
		n += count
	}
	return n
}

// quantile is the upper edge, in nanoseconds, of the bucket in which that many of a
// thousand durations are reached; 0 when there are none.
func (d *durations) quantile(total uint64, perMille uint64) int64 {
	if total == 0 {
		return 0
	}
	wanted := (total*perMille + 999) / 1000
	reached := uint64(0)
	for i, count := range d {
		if reached += count; reached >= wanted {
			return int64(verbs.QueueBucketEdge(i))
		}
	}
	return int64(verbs.QueueBucketEdge(len(d) - 1))
}
