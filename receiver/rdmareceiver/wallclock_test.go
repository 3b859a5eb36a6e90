package rdmareceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

const second = uint64(1e9)

func TestWallClockConvertsWithTheReadingBeforeTheEvent(t *testing.T) {
	var clock wallClock
	clock.add(clockReading{real: 1000e9, monotonic: 10e9})
	clock.add(clockReading{real: 1001e9, monotonic: 11e9})
	// NTP steps the wall clock forward by an hour.
	clock.add(clockReading{real: 4602e9, monotonic: 12e9})

	for _, tc := range []struct {
		name      string
		monotonic uint64
		want      pcommon.Timestamp
	}{
		{"before the first reading the oldest counts", 9 * second, 999e9},
		{"between readings", 10*second + 5e8, 1000.5e9},
		{"just before the step was seen", 12*second - 1, 1002e9 - 1},
		{"at the step", 12 * second, 4602e9},
		{"after the step", 13 * second, 4603e9},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, clock.at(tc.monotonic))
		})
	}
}

func TestWallClockKeepsTheLengthOfAnInterval(t *testing.T) {
	var clock wallClock
	clock.add(clockReading{real: 1000e9, monotonic: 10e9})
	clock.add(clockReading{real: 900e9, monotonic: 11e9})
	start, end := clock.interval(11*second-450_000, 11*second)
	assert.EqualValues(t, 450_000, end-start)
	assert.EqualValues(t, 900e9, end)
}

func TestWallClockForgetsOldReadings(t *testing.T) {
	var clock wallClock
	for i := range int64(3 * clockHistory) {
		clock.add(clockReading{real: 1000e9 + 2*i*1e9, monotonic: i * 1e9})
	}
	// The oldest reading kept answers for all that came before it.
	oldest := uint64(2*clockHistory) * second
	want := clockReading{real: 1000e9 + 4*clockHistory*1e9, monotonic: 2 * clockHistory * 1e9}.offset()
	assert.Equal(t, want, clock.offsetAt(oldest))
	assert.Equal(t, want, clock.offsetAt(0))
	assert.Equal(t, want+1e9, clock.offsetAt(oldest+second))
}
