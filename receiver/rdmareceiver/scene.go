package rdmareceiver

import (
	"slices"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
)

// scene is what went on around the bursts of one window.
type scene struct {
	// start and end are the window on CLOCK_MONOTONIC, in nanoseconds.
	start, end uint64
}

// burstOf is a burst with its surroundings. It has requests of its own, which may
// be changed.
func (s *scene) burstOf(b *held) diagnose.Burst {
	return diagnose.Burst{
		Start: min(s.start, b.first), End: s.end,
		Slow: slices.Clone(b.slow), Stuck: slices.Clone(b.stuck),
	}
}
