package diagnose

import (
	"strings"
	"testing"
	"time"
)

// What the timer of this side may explain is said, and makes nothing surer.
func TestRNRTimerOfThisSide(t *testing.T) {
	const timer = 655360 * time.Microsecond
	for name, test := range map[string]struct {
		timer time.Duration
		each  []int
		said  bool
	}{
		"one wait":             {timer, []int{3}, true},
		"up to three":          {timer, []int{1, 1, 1}, true},
		"too many to tell":     {timer, []int{0, 0, 0, 4}, false},
		"a shorter timer":      {10 * time.Microsecond, []int{3}, false},
		"a longer timer":       {2 * timer, []int{3}, false},
		"a timer of its third": {timer / 3, []int{3}, false},
		"not known":            {0, []int{3}, false},
		"four of five":         {timer, []int{4, 0, 0, 1}, true},
		"two of three":         {timer, []int{2, 0, 0, 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			refused := trial{burst: byQuanta(timer, test.each...), counters: mlx5(inHardware("rnr_nak_retry_err", 9))}
			b := refused.make()
			for i := range b.Slow {
				b.Slow[i].Path.MinRNRTimer = test.timer
			}
			got := Judge(b, networkCauses())
			if got.Cause != "receiver_not_ready" || got.Confidence != Likely {
				t.Errorf("got %s, %q", got.Cause, got.Confidence)
			}
			said := false
			for _, e := range got.For {
				said = said || strings.Contains(e.Text, "times 655 ms, the min_rnr_timer of this side")
			}
			if said != test.said {
				t.Errorf("it is said: %v\n%+v", said, got.For)
			}
		})
	}
}
