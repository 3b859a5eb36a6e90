package baseline

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const (
	threshold = 50 * time.Microsecond
	second    = uint64(time.Second)
)

// look is the time between two looks.
const look = 5 * time.Second

// world feeds a learner the requests of kinds.
type world struct {
	learner *Learner[string]
	now     uint64
	counts  map[string]*[Buckets]uint32
}

func newWorld() *world {
	return &world{learner: NewLearner[string](threshold, Window), counts: map[string]*[Buckets]uint32{}}
}

// mix is how many requests a second have an excess time.
type mix map[time.Duration]uint32

func bucketOf(excess time.Duration) int {
	edges := Edges(threshold)
	at, _ := slices.BinarySearch(edges[:], excess)
	return min(at, Buckets-1)
}

// run lets time pass with the same requests each second, and returns the last limit.
func (w *world) run(kind string, d time.Duration, requests mix) (limit time.Duration) {
	counts := w.counts[kind]
	if counts == nil {
		counts = new([Buckets]uint32)
		w.counts[kind] = counts
	}
	for range int(d / look) {
		for excess, n := range requests {
			counts[bucketOf(excess)] += n * uint32(look/time.Second)
		}
		w.now += uint64(look)
		limit, _ = w.learner.Observe(w.now, kind, counts)
	}
	return limit
}

var (
	fast   = mix{2 * time.Microsecond: 1000}
	normal = mix{300 * time.Microsecond: 1000}
)

func TestLearning(t *testing.T) {
	type phase struct {
		of       string
		lasts    time.Duration
		requests mix
		want     time.Duration
	}
	const learned = Ceiling * threshold // Four times 300 µs is more.
	for name, phases := range map[string][]phase{
		"what is fast has the threshold": {{"fast", 2 * time.Hour, fast, 0}},
		"a kind that is always slow is not hidden from its start": {
			{"the first half hour", 29 * time.Minute, normal, 0},
			{"after it", 3 * time.Minute, normal, learned},
		},
		"what is usual below the threshold raises it": {
			{"30 µs", time.Hour, mix{30 * time.Microsecond: 1000}, Multiple * Edges(threshold)[bucketOf(30*time.Microsecond)]},
			{"10 µs", 10 * time.Minute, mix{10 * time.Microsecond: 1000}, 0},
		},
		"over the ceiling nothing is learned": {
			{"3 ms", 3 * time.Hour, mix{3 * time.Millisecond: 1000}, 0},
		},
		"a part that is slow is never usual": {
			{"nearly half", 10 * time.Hour, mix{2 * time.Microsecond: 510, 450 * time.Microsecond: 490}, 0},
		},
		"a burst is not usual within minutes": {
			{"before", 2 * time.Hour, fast, 0},
			{"the burst", 25 * time.Minute, normal, 0},
			{"after it", 10 * time.Minute, fast, 0},
		},
		"a burst soon after the start": {
			{"before", 30 * time.Minute, fast, 0},
			{"the burst", 25 * time.Minute, normal, 0},
		},
		"a lasting change is usual after half an hour, and is not five minutes after its end": {
			{"before", 2 * time.Hour, fast, 0},
			{"the change", 32 * time.Minute, normal, learned},
			{"its end", 6 * time.Minute, fast, 0},
		},
		"a pause changes nothing": {
			{"before", time.Hour, normal, learned},
			{"the pause", 12 * time.Hour, nil, learned},
			{"after it", 20 * time.Minute, normal, learned},
		},
		"few requests make longer windows": {
			{"one a second", 90 * time.Minute, mix{300 * time.Microsecond: 1}, 0},
			{"after 30 windows of 200", 15 * time.Minute, mix{300 * time.Microsecond: 1}, learned},
		},
		"outliers do not count": {
			{"one in ten", time.Hour, mix{100 * time.Microsecond: 900, time.Second: 100}, Multiple * Edges(threshold)[bucketOf(100*time.Microsecond)]},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for _, p := range phases {
				if got := w.run("kind", p.lasts, p.requests); got != p.want {
					t.Errorf("%s: %v, want %v", p.of, got, p.want)
				}
			}
		})
	}
}

// Counts wrap at 2^32.
func TestCountsWrap(t *testing.T) {
	w := newWorld()
	w.counts["kind"] = new([Buckets]uint32)
	w.counts["kind"][bucketOf(300*time.Microsecond)] = 1<<32 - 500
	w.learner.Observe(w.now, "kind", w.counts["kind"])
	w.learner.kinds["kind"].current = [Buckets]uint64{}
	w.run("kind", 10*time.Second, normal)
	if got := total(&w.learner.kinds["kind"].current); got != 10_000 {
		t.Errorf("%d requests, want 10,000", got)
	}
}

// Whatever comes, a limit is 0 or above the threshold and up to the ceiling, and there
// is none before there are enough windows.
func TestLimitsStayWithinBounds(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	for range 200 {
		w := newWorld()
		counts := new([Buckets]uint32)
		for window := range 150 {
			for range 1 + random.IntN(3) {
				counts[random.IntN(Buckets)] += random.Uint32N(5000)
			}
			w.now += uint64(Window)
			limit, _ := w.learner.Observe(w.now, "kind", counts)
			if limit != 0 && (limit <= threshold || limit > Ceiling*threshold) {
				t.Fatalf("a limit of %v", limit)
			}
			if limit != 0 && window < needed {
				t.Fatalf("%v was learned from %d windows", limit, window)
			}
		}
	}
}

func TestStalestKindsGoFirst(t *testing.T) {
	w := newWorld()
	w.run("old", time.Hour, normal)
	w.run("busy", time.Minute, normal)
	w.run("idle", time.Minute, normal)
	w.run("old", time.Minute, nil)
	w.run("busy", time.Minute, fast)
	if got := w.learner.Stalest(2); !slices.Equal(got, []string{"old", "idle"}) {
		t.Errorf("the stalest are %q", got)
	}
	if len(w.learner.Limits()) != 1 || w.learner.Limits()["old"] == 0 {
		t.Errorf("the limits are %v", w.learner.Limits())
	}
	w.learner.Forget("old")
	if w.learner.Len() != 2 || len(w.learner.Stalest(10)) != 2 || len(w.learner.Limits()) != 0 {
		t.Error("a forgotten kind is still there")
	}
}
