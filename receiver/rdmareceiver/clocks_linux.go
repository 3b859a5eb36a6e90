package rdmareceiver

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// clockAttempts is how often the clocks are read for one reading. The attempt
// that was interrupted the least counts.
const clockAttempts = 3

// readClocks reads the wall clock between two readings of the monotonic one
// and pairs it with their middle.
func readClocks() (clockReading, error) {
	var best clockReading
	bestGap := int64(-1)
	for range clockAttempts {
		reading, gap, err := readClocksOnce()
		if err != nil {
			return clockReading{}, err
		}
		if bestGap < 0 || gap < bestGap {
			best, bestGap = reading, gap
		}
	}
	return best, nil
}

func readClocksOnce() (clockReading, int64, error) {
	before, err := readClock(unix.CLOCK_MONOTONIC)
	if err != nil {
		return clockReading{}, 0, err
	}
	wall, err := readClock(unix.CLOCK_REALTIME)
	if err != nil {
		return clockReading{}, 0, err
	}
	after, err := readClock(unix.CLOCK_MONOTONIC)
	if err != nil {
		return clockReading{}, 0, err
	}
	return clockReading{real: wall, monotonic: before + (after-before)/2}, after - before, nil
}

func readClock(id int32) (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, fmt.Errorf("clock_gettime(%d): %w", id, err)
	}
	return ts.Nano(), nil
}
