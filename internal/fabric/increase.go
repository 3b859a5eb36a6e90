package fabric

import (
	"os"
	"time"
)

// total adds up what a counter grew by.
type total struct {
	// last is the value read last, sum what was added since the first reading.
	last, sum uint64
	since     time.Time
	// device tells one device from another of its name.
	device os.FileInfo
	// found is the counter.
	found match
}

func (t *total) add(raw uint64, bits int) {
	t.sum += increase(t.last, raw, bits)
	t.last = raw
}

// increase is what a counter grew by. One that is less than before has wrapped,
// if it can and that makes a step of less than half its range; else it was
// cleared, and counts from zero.
func increase(before, now uint64, bits int) uint64 {
	if now >= before {
		return now - before
	}
	if bits <= 0 || bits >= 64 || before >= 1<<bits {
		return now
	}
	if wrapped := 1<<bits - before + now; wrapped < 1<<(bits-1) {
		return wrapped
	}
	return now
}
