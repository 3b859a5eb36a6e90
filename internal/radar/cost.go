package radar

import "time"

// costLeast is the least time over which cost is told: below, ticks of the clock
// would show.
const costLeast = time.Second

// costMeter tells how much CPU time this process takes.
type costMeter struct {
	// spent is the CPU time of the process so far, 0 where it is not known.
	spent func() time.Duration

	at    time.Time
	base  time.Duration
	cores float64
}

// newCostMeter begins with the time since now, so that the first view has something to
// tell.
func newCostMeter(now time.Time, spent func() time.Duration) costMeter {
	return costMeter{spent: spent, at: now, base: spent()}
}

// view returns what was spent since the view before, or the last one a second ago.
func (c *costMeter) view(now time.Time) Cost {
	elapsed := now.Sub(c.at)
	if elapsed < costLeast {
		return Cost{Cores: c.cores}
	}
	spent := c.spent()
	c.cores = float64((spent-c.base)*1000/elapsed) / 1000
	c.at, c.base = now, spent
	return Cost{Cores: c.cores}
}
