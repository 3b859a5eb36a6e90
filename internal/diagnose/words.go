package diagnose

import (
	"fmt"
	"time"
)

// short is a duration for people, of three digits.
func short(d time.Duration) string {
	unit := time.Nanosecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// amount is a number with its noun, which takes an s where it is not one.
func amount(n float64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%.0f %ss", n, noun)
}
