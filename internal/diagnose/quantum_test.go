package diagnose

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// timers are those that a queue may have: a min_rnr_timer, a timeout and adaptive
// retransmission.
func timers() []quantum {
	return []quantum{rnrQuantum(640 * time.Microsecond), ackQuantum(67108864 * time.Nanosecond), adaptiveQuantum()}
}

// waits are so many durations of each number of quanta, and up to so much more.
func waitsOf(random *rand.Rand, quantum time.Duration, jitter float64, each ...int) (all []time.Duration) {
	for multiple, n := range each {
		for range n {
			length := float64(multiple+1) + jitter*random.Float64()
			all = append(all, time.Duration(length*float64(quantum)))
		}
	}
	return all
}

// within are so many durations that are spread evenly.
func within(random *rand.Rand, n int, low, high time.Duration) (all []time.Duration) {
	for range n {
		all = append(all, low+time.Duration(random.Float64()*float64(high-low)))
	}
	return all
}

func join(sets ...[]time.Duration) (all []time.Duration) {
	for _, set := range sets {
		all = append(all, set...)
	}
	return all
}

func TestFindQuantum(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	ms := time.Millisecond
	for _, c := range []struct {
		name      string
		durations []time.Duration
		want      string // the quantum, "" for none
		multiples int
	}{
		{"a receiver that does not post", waitsOf(random, 640*time.Microsecond, 0.08, 30, 15, 10), "min_rnr_timer", 3},
		{"with some that wait for something else", join(waitsOf(random, 640*time.Microsecond, 0.08, 30, 15, 10), within(random, 6, 0, 2*ms)), "min_rnr_timer", 3},
		{"a timeout that the device makes longer", waitsOf(random, 114*ms, 0.05, 20, 12), "ack_timeout", 2},
		{"adaptive retransmission", waitsOf(random, 10*ms, 0.05, 40, 10, 10, 5), "adaptive_retransmission", 4},
		{"one timeout each", waitsOf(random, 10*ms, 0.05, 40), "adaptive_retransmission", 1},
		{"one plateau, and strays", join(waitsOf(random, 10*ms, 0.05, 95), within(random, 15, 0, 200*ms)), "adaptive_retransmission", 1},
		{"one plateau that is no timer", within(random, 100, 450*time.Microsecond, 470*time.Microsecond), "", 0},
		{"longer and longer", within(random, 1000, 50*time.Microsecond, 30*ms), "", 0},
		{"halfway between multiples", waitsOf(random, 640*time.Microsecond, 0.9, 30, 30, 30), "", 0},
		{"too few to tell", waitsOf(random, 640*time.Microsecond, 0.08, 1, 1, 1), "", 0},
		{"none", nil, "", 0},
		{"none above 0", []time.Duration{0, -1}, "", 0},
	} {
		got, found := findQuantum(c.durations, timers())
		if found != (c.want != "") || got.Quantum.Name != c.want || got.Multiples != c.multiples {
			t.Errorf("%s: %+v, want %q at %d multiples", c.name, got, c.want, c.multiples)
		}
		if found && (got.Share < leastShare || got.Share > 1 || got.logChance > math.Log(mostChance)) {
			t.Errorf("%s: share %v, chance e^%v", c.name, got.Share, got.logChance)
		}
	}
}

// The length is found within the range that the device has a choice of.
func TestQuantumOfARange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, factor := range []float64{1, 1.3, 2, 3.9} {
		timeout := 4194304 * time.Nanosecond
		length := time.Duration(factor * float64(timeout))
		got, found := findQuantum(waitsOf(random, length, 0.04, 30, 15, 15), []quantum{ackQuantum(timeout)})
		if ratio := float64(got.Length) / float64(length); !found || got.Multiples != 3 || ratio < 0.95 || ratio > 1.07 {
			t.Errorf("%v: %+v", length, got)
		}
	}
}

// A half explains all that the whole does; the whole is the answer.
func TestTheLongerQuantumWins(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	durations := waitsOf(random, 10*time.Millisecond, 0.04, 40, 20, 20)
	for _, quanta := range [][]quantum{
		{{Name: "half", Length: 5 * time.Millisecond}, adaptiveQuantum()},
		{adaptiveQuantum(), {Name: "half", Length: 5 * time.Millisecond}},
	} {
		if got, _ := findQuantum(durations, quanta); got.Quantum.Name != "adaptive_retransmission" {
			t.Errorf("%+v", got)
		}
	}
}

func TestQuantaWithoutLength(t *testing.T) {
	durations := within(rand.New(rand.NewPCG(3, 3)), 100, time.Millisecond, time.Second)
	if got, found := findQuantum(durations, []quantum{rnrQuantum(0), ackQuantum(0), {Length: -1}}); found {
		t.Errorf("%+v", got)
	}
	if got, found := findQuantum(durations, nil); found {
		t.Errorf("%+v", got)
	}
}

// shapes are ways in which durations may be random, at a scale.
var shapes = map[string]func(random *rand.Rand, scale float64) float64{
	"even":        func(r *rand.Rand, scale float64) float64 { return scale * r.Float64() },
	"even above":  func(r *rand.Rand, scale float64) float64 { return scale * (1 + r.Float64()) },
	"exponential": func(r *rand.Rand, scale float64) float64 { return scale * r.ExpFloat64() },
	"lognormal":   func(r *rand.Rand, scale float64) float64 { return scale * math.Exp(r.NormFloat64()) },
	"heavy tail":  func(r *rand.Rand, scale float64) float64 { return scale / (1e-3 + r.Float64()) },
}

// Of 10,000 random sets none counts as quantised.
func TestRandomDurationsAreNotQuantised(t *testing.T) {
	const seed = 42
	random := rand.New(rand.NewPCG(seed, seed))
	for name, shape := range shapes {
		for range 10_000 / len(shapes) {
			scale := math.Exp(math.Log(5e4) + random.Float64()*math.Log(1e5)) // 50 µs to 5 s
			durations := make([]time.Duration, 1+random.IntN(300))
			for i := range durations {
				durations[i] = time.Duration(shape(random, scale))
			}
			if got, found := findQuantum(durations, timers()); found {
				t.Fatalf("%s at %v: %d durations count as %+v", name, time.Duration(scale), len(durations), got)
			}
		}
	}
}

// A narrow cluster may lie at a multiple, with strays anywhere: that is one plateau,
// and never two.
func TestRandomClustersAreOnePlateau(t *testing.T) {
	const seed = 43
	random := rand.New(rand.NewPCG(seed, seed))
	plateaus := 0
	for range 10_000 {
		center := math.Exp(math.Log(5e4) + random.Float64()*math.Log(1e4))
		width := center * random.Float64() * 0.2
		durations := make([]time.Duration, 1+random.IntN(300))
		for i := range durations {
			durations[i] = time.Duration(center + width*random.NormFloat64())
			if random.Float64() < 0.15 {
				durations[i] = time.Duration(20 * center * random.Float64())
			}
		}
		got, found := findQuantum(durations, timers())
		if found {
			plateaus++
		}
		if got.Multiples > 1 {
			t.Fatalf("%d durations about %v count as %+v", len(durations), time.Duration(center), got)
		}
	}
	t.Logf("%d of 10,000 clusters lay at a multiple", plateaus)
}

// The tail is that of summing probabilities one by one.
func TestBinomialTail(t *testing.T) {
	for _, c := range []struct {
		n, k int
		p    float64
	}{{1, 1, 0.5}, {10, 3, 0.12}, {40, 20, 0.3}, {100, 5, 0.5}, {5, 0, 0.1}, {8, 8, 0.12}, {3, 2, 1}} {
		want := 0.0
		for i := c.k; i <= c.n; i++ {
			want += math.Exp(logChoose(c.n, i)) * math.Pow(c.p, float64(i)) * math.Pow(1-c.p, float64(c.n-i))
		}
		if got := math.Exp(logBinomialTail(c.n, c.k, c.p)); math.Abs(got-want) > 1e-9*want+1e-12 {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
}
