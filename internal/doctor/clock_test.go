package doctor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClock(t *testing.T) {
	zero := expected{OK, "was 0 at 2026-11-29T16:46:50.792155Z by the wall clock, ±295 ns"}
	boot := time.Date(2026, 11, 29, 16, 46, 50, 792_155_000, time.UTC)
	for name, test := range map[string]struct {
		facts clockFacts
		want  []expected
	}{
		"synchronised": {clockFacts{synchronised: true, maxError: 4 * time.Millisecond, estimated: 12 * time.Microsecond, source: "tsc"}, []expected{{OK, "to within 4 ms at the most (12 µs"}, zero}},
		"loosely":      {clockFacts{synchronised: true, maxError: 2 * time.Second, source: "kvm-clock"}, []expected{{Note, "cannot be told"}, zero}},
		"not":          {clockFacts{source: "arch_sys_counter"}, []expected{{Warning, "Run chronyd"}, zero}},
		"slow source":  {clockFacts{synchronised: true, source: "hpet"}, []expected{{OK, ""}, zero, {Warning, "clocksource watchdog"}}},
	} {
		test.facts.boot, test.facts.uncertain = boot, 295*time.Nanosecond
		expect(t, name, judgeClock(test.facts), test.want...)
	}
}

func TestClockIsRead(t *testing.T) {
	f, err := readClock()
	require.NoError(t, err)
	assert.True(t, f.boot.Before(time.Now()))
	assert.Positive(t, f.uncertain)
	again, err := readClock()
	require.NoError(t, err)
	assert.WithinDuration(t, f.boot, again.boot, time.Minute)
}
