package diagnose

import (
	"math"
	"slices"
	"time"
)

// quantum is what waiting may come in multiples of, such as a timer of the queue.
type quantum struct {
	Name string
	// Length is that of the quantum. Where the device may choose, it is from Length
	// to Longest; 0 stands for Length.
	Length, Longest time.Duration
}

// rnrQuantum is the min_rnr_timer of the responder: so long a requester waits after
// each RNR NAK (IBTA 9.7.5.2.8).
func rnrQuantum(minRNRTimer time.Duration) quantum {
	return quantum{Name: "min_rnr_timer", Length: minRNRTimer}
}

// ackQuantum is the time after which a requester sends again what was not
// acknowledged: at least the Local ACK Timeout, and at most four times that (IBTA
// 9.7.6.1.3).
func ackQuantum(ackTimeout time.Duration) quantum {
	return quantum{Name: "ack_timeout", Length: ackTimeout, Longest: 4 * ackTimeout}
}

// adaptiveQuantum is after how long users saw NVIDIA's NICs with adaptive
// retransmission send again, whatever the timeout
// (https://github.com/NVIDIA/nccl/issues/1555). The profile of the firmware decides: it
// is a hint.
func adaptiveQuantum() quantum {
	return quantum{Name: "adaptive_retransmission", Length: 10 * time.Millisecond}
}

// quantisation is how durations lie at multiples of a quantum.
type quantisation struct {
	Quantum quantum
	// Length is the one that explains most, where the quantum has a range.
	Length time.Duration
	// Share is the part of the durations that end shortly after a multiple.
	Share float64
	// Multiples counts the multiples that have a part in it. With one alone the
	// durations are a single plateau, as everything gives that takes so long: that
	// means something only for a timer that the queue is known to have.
	Multiples int
	// logChance is the logarithm of the probability that durations which are spread
	// evenly from 0 to the longest have such a share for any of the quanta.
	logChance float64
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

// findQuantum looks for the quantum whose multiples the excess times of slow requests
// lie at, false when there is none. Durations that are not above 0, and quanta of no
// length, count for nothing.
func findQuantum(durations []time.Duration, quanta []quantum) (best quantisation, found bool) {
	durations = slices.DeleteFunc(slices.Clone(durations), func(d time.Duration) bool { return d <= 0 })
	if len(durations) == 0 {
		return quantisation{}, false
	}
	trials := 0
	for _, q := range quanta {
		trials += len(q.lengths())
	}
	for _, q := range quanta {
		for _, length := range q.lengths() {
			one, is := tryLength(durations, length, trials)
			if is && (!found || one.beats(&best)) {
				one.Quantum = q
				best, found = one, true
			}
		}
	}
	return best, found
}

// tryLength says how durations lie at the multiples of one length, of so many that are
// tried; false when they may by accident.
func tryLength(durations []time.Duration, length time.Duration, trials int) (one quantisation, is bool) {
	explained := countExplained(durations, length)
	share := float64(explained) / float64(len(durations))
	if share < leastShare {
		return quantisation{}, false
	}
	covered := coveredShare(length, slices.Max(durations))
	chance := logBinomialTail(len(durations), explained, covered) + math.Log(float64(trials))
	if chance > math.Log(mostChance) {
		return quantisation{}, false
	}
	return quantisation{
		Length: length, Share: share, Multiples: countMultiples(durations, length, trials), logChance: chance,
	}, true
}

// beats reports whether it is less of an accident. Of two that explain as much it is
// the longer: multiples of it are multiples of its half.
func (q *quantisation) beats(other *quantisation) bool {
	if q.logChance != other.logChance {
		return q.logChance < other.logChance
	}
	return q.Length > other.Length
}

// lengths are those that are tried of a quantum.
func (q quantum) lengths() []time.Duration {
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
