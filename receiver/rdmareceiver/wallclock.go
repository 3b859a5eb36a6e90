package rdmareceiver

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// clockReading is CLOCK_REALTIME and CLOCK_MONOTONIC at one moment, in
// nanoseconds.
type clockReading struct {
	real, monotonic int64
}

// offset is what to add to monotonic time to get wall time.
func (r clockReading) offset() int64 { return r.real - r.monotonic }

// clockHistory is how many readings are kept. Read once a second they span
// more time than a completion spends between its delivery and its export.
const clockHistory = 16

// wallClock turns CLOCK_MONOTONIC, which is what the kernel stamps, into wall
// time. The offset between the two changes whenever the wall clock is set or
// slewed, so it is read again and again, and an event is converted with the
// reading nearest before it: a step of the clock moves no span made before it.
type wallClock struct {
	mu       sync.Mutex
	readings [clockHistory]clockReading
	count    int
}

// add records a reading. Readings must come in the order of time.
func (c *wallClock) add(r clockReading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings[c.count%clockHistory] = r
	c.count++
}

// latest is CLOCK_MONOTONIC at the last reading, 0 before there is one.
func (c *wallClock) latest() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == 0 {
		return 0
	}
	return uint64(c.readings[(c.count-1)%clockHistory].monotonic)
}

// offsetAt returns the offset that was valid at a moment of CLOCK_MONOTONIC.
func (c *wallClock) offsetAt(monotonic uint64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := min(c.count, clockHistory)
	var best clockReading
	for i := range kept {
		best = c.readings[(c.count-1-i)%clockHistory]
		if best.monotonic <= int64(monotonic) {
			break
		}
	}
	return best.offset()
}

// interval converts the two ends of an interval with one offset, that of its
// end, so that its length stays exact.
func (c *wallClock) interval(start, end uint64) (pcommon.Timestamp, pcommon.Timestamp) {
	offset := c.offsetAt(end)
	return wallTime(start, offset), wallTime(end, offset)
}

// at converts one moment.
func (c *wallClock) at(monotonic uint64) pcommon.Timestamp {
	return wallTime(monotonic, c.offsetAt(monotonic))
}

func wallTime(monotonic uint64, offset int64) pcommon.Timestamp {
	return pcommon.Timestamp(int64(monotonic) + offset)
}

// secondsOf is a duration as OTLP wants it.
func secondsOf(d time.Duration) float64 { return d.Seconds() }
