package diagnose

import (
	"math"
	"time"
)

// quantised is the part of the durations, from 0 to 1, that are within a tenth of
// the quantum of one to eight times the quantum. It is 0 for fewer than three
// durations: a plateau of two is none. By chance a fifth of them is.
func quantised(durations []time.Duration, quantum time.Duration) (share float64) {
	if len(durations) < 3 || quantum <= 0 {
		return 0
	}
	on := 0
	for _, d := range durations {
		times := math.Round(float64(d) / float64(quantum))
		off := math.Abs(float64(d) - times*float64(quantum))
		if times >= 1 && times <= 8 && off <= float64(quantum)/10 {
			on++
		}
	}
	return float64(on) / float64(len(durations))
}
