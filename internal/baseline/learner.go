package baseline

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Window is the shortest time that one level is learned from.
const Window = time.Minute

const (
	// Multiple is how many times as long as usual a request may take.
	Multiple = 4
	// Ceiling is how many times the threshold a limit may be at the most. Where
	// more than that is usual, nothing is learned.
	Ceiling = 16

	// remembered is how many windows of a kind are kept, needed how many there
	// must be before anything is learned.
	remembered, needed = 60, 30
	// recent is how many windows are enough to lower a limit.
	recent = 9
	// leastRequests is how many requests a window has at the least.
	leastRequests = 200
)

// Learner learns what is usual from the counts of each kind. The usual excess time of
// a window is its median: as long as less than half of the requests are slow, they
// are slow, for however long. What is usual is the median of the windows of the last
// hour, so that it takes half an hour to rise; and no more than that of the last nine,
// so that it falls within five minutes. It is not safe for concurrent use.
type Learner[K comparable] struct {
	threshold, window time.Duration
	edges             [Buckets]time.Duration
	kinds             map[K]*history
}

// history is what is known of a kind.
type history struct {
	// before are the counts at the last look, current those of the present window,
	// which began at since.
	before  [Buckets]uint32
	current [Buckets]uint64
	since   uint64
	// levels are the buckets of the medians of windows, the newest last.
	levels []uint8
	limit  time.Duration
	// active is when the kind was last seen to have a request.
	active uint64
}

// NewLearner returns a learner for a threshold above 0 and windows of at least the
// given length, which is Window but in tests.
func NewLearner[K comparable](threshold, window time.Duration) *Learner[K] {
	return &Learner[K]{threshold: threshold, window: window, edges: Edges(threshold), kinds: map[K]*history{}}
}

// Observe takes the counts of a kind, cumulative and wrapping, at a moment in
// nanoseconds of a monotonic clock. It returns the limit of the kind, 0 while that is
// the threshold, and whether it changed.
func (l *Learner[K]) Observe(now uint64, kind K, counts *[Buckets]uint32) (limit time.Duration, changed bool) {
	h := l.kinds[kind]
	if h == nil {
		h = &history{since: now, active: now}
		l.kinds[kind] = h
	}
	if h.add(counts) {
		h.active = now
	}
	if now-h.since < uint64(l.window) || total(&h.current) < leastRequests {
		return h.limit, false
	}
	h.close(now)
	limit = l.limitOf(h.levels)
	changed = limit != h.limit
	h.limit = limit
	return limit, changed
}

// add counts what came since the last look, and reports whether anything did.
func (h *history) add(counts *[Buckets]uint32) bool {
	any := false
	for i, n := range counts {
		more := n - h.before[i]
		h.current[i] += uint64(more)
		any = any || more != 0
	}
	h.before = *counts
	return any
}

// close ends the present window.
func (h *history) close(now uint64) {
	if len(h.levels) == remembered {
		h.levels = h.levels[:copy(h.levels, h.levels[1:])]
	}
	h.levels = append(h.levels, medianBucket(&h.current))
	h.current = [Buckets]uint64{}
	h.since = now
}

// limitOf is 0 where the threshold is the limit.
func (l *Learner[K]) limitOf(levels []uint8) time.Duration {
	if len(levels) < needed {
		return 0
	}
	usual := l.edges[min(median(levels), median(levels[len(levels)-recent:]))]
	ceiling := Ceiling * l.threshold
	if usual > ceiling {
		return 0
	}
	if limit := min(Multiple*usual, ceiling); limit > l.threshold {
		return limit
	}
	return 0
}

// Len is how many kinds are known.
func (l *Learner[K]) Len() int { return len(l.kinds) }

// Stalest returns as many kinds as asked for, those first that had no request for the
// longest time.
func (l *Learner[K]) Stalest(n int) []K {
	if n <= 0 {
		return nil
	}
	kinds := slices.SortedFunc(maps.Keys(l.kinds), func(a, b K) int {
		return cmp.Compare(l.kinds[a].active, l.kinds[b].active)
	})
	return kinds[:min(n, len(kinds))]
}

// Forget drops a kind.
func (l *Learner[K]) Forget(kind K) { delete(l.kinds, kind) }

// Limits returns the limits that are not the threshold, by kind.
func (l *Learner[K]) Limits() map[K]time.Duration {
	limits := map[K]time.Duration{}
	for kind, h := range l.kinds {
		if h.limit != 0 {
			limits[kind] = h.limit
		}
	}
	return limits
}

func total(counts *[Buckets]uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// medianBucket is the first bucket up to which at least half of all are.
func medianBucket(counts *[Buckets]uint64) uint8 {
	all, sum := total(counts), uint64(0)
	for i, n := range counts {
		if sum += n; 2*sum >= all {
			return uint8(i)
		}
	}
	return Buckets - 1
}

// median is the lower one of an even number.
func median(levels []uint8) uint8 {
	sorted := slices.Sorted(slices.Values(levels))
	return sorted[(len(sorted)-1)/2]
}
