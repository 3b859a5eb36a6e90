package rdmareceiver

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// increaseOf returns what was added to a cumulative series since it was seen
// before. Min and Max are those of its whole life. A series of which any part
// went back was started anew, and all of it is an increase, as all of one that
// was not seen before, where before is nil.
func increaseOf(now, before *verbs.Series) verbs.Series {
	if before == nil || wentBack(now, before) {
		return *now
	}
	increase := *now
	increase.Completions -= before.Completions
	increase.Timed -= before.Timed
	increase.Requests -= before.Requests
	increase.Bytes -= before.Bytes
	increase.Slow -= before.Slow
	increase.Sum -= before.Sum
	increase.Excess -= before.Excess
	for i := range increase.StageTime {
		increase.StageTime[i] -= before.StageTime[i]
	}
	for i := range increase.Durations.Counts {
		increase.Durations.Counts[i] -= before.Durations.Counts[i]
	}
	return increase
}

// wentBack reports whether any part of a series is less than it was. Parts that
// belong together are not updated in one step, so all of them are looked at.
func wentBack(now, before *verbs.Series) bool {
	if now.Completions < before.Completions || now.Timed < before.Timed || now.Requests < before.Requests ||
		now.Bytes < before.Bytes || now.Slow < before.Slow || now.Sum < before.Sum || now.Excess < before.Excess {
		return true
	}
	return anyLess(now.StageTime[:], before.StageTime[:]) || anyLess(now.Durations.Counts[:], before.Durations.Counts[:])
}

func anyLess[T time.Duration | uint64](now, before []T) bool {
	for i := range now {
		if now[i] < before[i] {
			return true
		}
	}
	return false
}

// byKey returns the series by what they count. Those of the same key are added
// up: devices whose names could not be read are not told apart.
func byKey(all []verbs.Series) map[verbs.SeriesKey]*verbs.Series {
	series := make(map[verbs.SeriesKey]*verbs.Series, len(all))
	for i := range all {
		s := &all[i]
		if earlier := series[s.Key]; earlier != nil {
			s = sumOf(s, earlier)
		}
		series[s.Key] = s
	}
	return series
}

func sumOf(a, b *verbs.Series) *verbs.Series {
	sum := *a
	sum.Completions += b.Completions
	sum.Timed += b.Timed
	sum.Requests += b.Requests
	sum.Bytes += b.Bytes
	sum.Slow += b.Slow
	sum.Sum += b.Sum
	sum.Excess += b.Excess
	sum.Max = max(a.Max, b.Max)
	if a.Timed == 0 || b.Timed > 0 && b.Min < a.Min {
		sum.Min = b.Min
	}
	for i := range sum.StageTime {
		sum.StageTime[i] += b.StageTime[i]
	}
	for i := range sum.Durations.Counts {
		sum.Durations.Counts[i] += b.Durations.Counts[i]
	}
	return &sum
}

// increaseOfCount is increaseOf for a single number.
func increaseOfCount(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}
