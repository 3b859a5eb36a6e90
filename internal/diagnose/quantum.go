package diagnose

import (
	"math"
	"slices"
	"time"
)

// Quantum is what waiting may come in multiples of, such as a timer of the queue.
type Quantum struct {
	Name string
	// Length is that of the quantum. Where the device may choose, it is from Length
	// to Longest; 0 stands for Length.
	Length, Longest time.Duration
}

// RNRQuantum is the min_rnr_timer of the responder: so long a requester waits after
// each RNR NAK (IBTA 9.7.5.2.8).
func RNRQuantum(minRNRTimer time.Duration) Quantum {
	return Quantum{Name: "min_rnr_timer", Length: minRNRTimer}
}

// AckQuantum is the time after which a requester sends again what was not
// acknowledged: at least the Local ACK Timeout, and at most four times that (IBTA
// 9.7.6.1.3).
func AckQuantum(ackTimeout time.Duration) Quantum {
	return Quantum{Name: "ack_timeout", Length: ackTimeout, Longest: 4 * ackTimeout}
}

// AdaptiveQuantum is after how long NVIDIA's NICs with adaptive retransmission send
// again, whatever the timeout (https://github.com/NVIDIA/nccl/issues/1555).
func AdaptiveQuantum() Quantum {
	return Quantum{Name: "adaptive_retransmission", Length: 10 * time.Millisecond}
}

// Quantisation is how durations lie at multiples of a quantum.
type Quantisation struct {
	Quantum Quantum
	// Length is the one that explains most, where the quantum has a range.
	Length time.Duration
	// Share is the part of the durations that end shortly after a multiple.
	Share float64
	// Multiples counts the multiples that have a part in it. With one alone the
	// durations are a single plateau, as everything gives that takes so long: that
	// means something only for a timer that the queue is known to have.
	Multiples int
	// Chance is the probability that durations which are spread evenly from 0 to
	// the longest have such a share for any of the quanta.
	Chance float64
}

const (
	// leastShare is the part that must be explained.
	leastShare = 0.8
	// mostChance is how probable an accident may be.
	mostChance = 1e-6
	// tooEarly and tooLate are how much before and after a multiple a duration may end,
	// in quanta: clocks differ, and what waited still has to be done.
	tooEarly, tooLate = 0.02, 0.1
	// lengthStep is the ratio of one length that is tried to the one before. It
	// moves the sixth multiple by less than early and late leave.
	lengthStep = 1.02
	// mostLengths bounds the lengths that are tried of one quantum.
	mostLengths = 200
)

// FindQuantum looks for the quantum whose multiples the excess times of slow requests
// lie at, false when there is none. Durations that are not above 0, and quanta of no
// length, count for nothing.
func FindQuantum(durations []time.Duration, quanta []Quantum) (best Quantisation, found bool) {
	durations = slices.DeleteFunc(slices.Clone(durations), func(d time.Duration) bool { return d <= 0 })
	if len(durations) == 0 {
		return Quantisation{}, false
	}
	longest := slices.Max(durations)
	trials := 0
	for _, quantum := range quanta {
		trials += len(quantum.lengths())
	}
	bestChance := math.Inf(1)
	for _, quantum := range quanta {
		for _, length := range quantum.lengths() {
			explained := countExplained(durations, length)
			share := float64(explained) / float64(len(durations))
			if share < leastShare {
				continue
			}
			covered := coveredShare(length, longest)
			chance := logBinomialTail(len(durations), explained, covered) + math.Log(float64(trials))
			if chance > math.Log(mostChance) {
				continue
			}
			// Of two that explain as much, the longer: multiples of it are
			// multiples of its half.
			if chance > bestChance || chance == bestChance && length <= best.Length {
				continue
			}
			bestChance, found = chance, true
			best = Quantisation{
				Quantum: quantum, Length: length, Share: share,
				Multiples: countMultiples(durations, length, trials), Chance: math.Exp(chance),
			}
		}
	}
	return best, found
}

// lengths are those that are tried of a quantum.
func (q Quantum) lengths() []time.Duration {
	if q.Length <= 0 {
		return nil
	}
	lengths := []time.Duration{q.Length}
	for length := float64(q.Length) * lengthStep; length <= float64(q.Longest) && len(lengths) < mostLengths; length *= lengthStep {
		lengths = append(lengths, time.Duration(length))
	}
	return lengths
}

// nearest is the multiple of a length that a duration is nearest to, 0 for one that is
// shorter, and whether it lies at it. The middle between two multiples is that of what
// lies between them.
func nearest(d, length time.Duration) (multiple int64, at bool) {
	ratio := float64(d) / float64(length)
	whole := math.Floor(ratio + 0.5 - (tooLate-tooEarly)/2)
	past := ratio - whole
	return int64(whole), whole >= 1 && past >= -tooEarly && past <= tooLate
}

// countExplained counts the durations that lie at multiples.
func countExplained(durations []time.Duration, length time.Duration) (n int) {
	for _, d := range durations {
		if _, at := nearest(d, length); at {
			n++
		}
	}
	return n
}

// coveredShare is the part of all that is no longer than the longest that lies at
// multiples.
func coveredShare(length, longest time.Duration) float64 {
	end := float64(longest) / float64(length)
	whole := math.Floor(end + tooEarly)
	if whole < 1 {
		return 0
	}
	covered := (whole-1)*(tooEarly+tooLate) + tooEarly + min(end-whole, tooLate)
	return min(covered/end, 1)
}

// countMultiples counts the multiples that durations lie at. The one with the most would
// be a plateau of whatever origin, with strays beside it: the others count only where
// these cannot be strays.
func countMultiples(durations []time.Duration, length time.Duration, trials int) int {
	near, at := map[int64]int{}, map[int64]int{}
	most, explained := int64(0), 0
	for _, d := range durations {
		multiple, isAt := nearest(d, length)
		near[multiple]++
		if isAt {
			explained++
			at[multiple]++
		}
	}
	for multiple, n := range at {
		if n > at[most] || n == at[most] && multiple < most {
			most = multiple
		}
	}
	strays := len(durations) - near[most]
	explained -= at[most]
	chance := logBinomialTail(strays, explained, tooEarly+tooLate) + math.Log(float64(trials))
	if float64(explained) < leastShare*float64(strays) || chance > math.Log(mostChance) {
		return 1
	}
	return len(at)
}

// logBinomialTail is the logarithm of the probability of at least k successes in n
// trials of probability p each.
func logBinomialTail(n, k int, p float64) float64 {
	if k <= 0 || p >= 1 {
		return 0
	}
	if p <= 0 {
		return math.Inf(-1)
	}
	term := logChoose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p)
	// The terms that follow, relative to the first one.
	sum, ratio := 1.0, 1.0
	for i := k; i < n && ratio > 1e-12; i++ {
		ratio *= float64(n-i) / float64(i+1) * p / (1 - p)
		sum += ratio
	}
	return min(term+math.Log(sum), 0)
}

func logChoose(n, k int) float64 {
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
}

func logFactorial(n int) float64 {
	value, _ := math.Lgamma(float64(n) + 1)
	return value
}
