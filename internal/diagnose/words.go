package diagnose

import (
	"fmt"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// short is a duration for people.
func short(d time.Duration) string { return text.Duration(d) }

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// amount is a number with its noun, which takes an s where it is not one.
func amount(n float64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%.0f %ss", n, noun)
}
