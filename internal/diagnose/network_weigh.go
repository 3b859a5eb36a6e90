package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// weighTime compares a time that was counted over the span of the counters, in
// which something was in the way, with the time for which requests were slow: how
// sure it is that the two are one, and which part it explains.
//
// A time that is common anyway falls on a slow request by chance. It is certain
// where the two are so long that most of the slow time was within the counted, and
// likely where half of it was, or where they are about as long.
func (c *networkCase) weighTime(counted time.Duration) (Confidence, float64) {
	explains := ratio(counted, c.union)
	within := ratio(counted+c.union-c.Counters.Span, c.union)
	switch {
	case within >= most:
		return Certain, explains
	case within >= half:
		return Likely, explains
	case explains >= 0.5 && counted <= 3*c.union:
		return Likely, explains
	case explains >= 0.1:
		return Possible, explains
	default:
		return None, 0
	}
}

// longSpan is longer than counters need to be apart while something is slow.
const longSpan = 3 * time.Second

// weighCount notes how an event of the whole device compares with what was slow,
// each of which it has to have happened to. It returns the part that it covers.
//
// Other queue pairs may have caused it. Where others are slow that lead to other
// peers, there has to be at least one more for each. And it may have happened at
// another time: where the counters grew over much longer than the window, the
// numbers have to be alike.
func (c *networkCase) weighCount(name string, n float64) (covers float64) {
	covers = min(n/c.count(), 1)
	elsewhere := float64(c.Neighbours.Slow - c.Neighbours.SlowOfPeer)
	if c.Counters.Span > longSpan {
		c.limit(Likely)
	}
	switch {
	case c.Counters.Span > longSpan && n > 3*c.count():
		c.opposes(Possible, name, "%s counted over %s, many more than %s", amount(n, "event"), short(c.Counters.Span), amount(c.count(), "slow request"))
	case covers < 0.5:
		c.opposes(Possible, name, "%s counted, too few for %s", amount(n, "event"), amount(c.count(), "slow request"))
	case n < c.count()/2+elsewhere:
		c.opposes(Possible, name, "%s to other peers were slow too and may have caused it", amount(elsewhere, "queue pair"))
	}
	return covers
}

// alone reports whether it is known that no other queue pair of the device was slow, so
// that what the device counted can hardly be another's. What the others did is known
// where it is known what this one completed.
func (c *networkCase) alone() bool {
	return c.HasCompletions && c.Neighbours.QueuePairs > 0 && c.Neighbours.Slow == 0
}

// weighTogether notes whether the other queue pairs were slow as well, which
// something that stops the whole port makes them.
func (c *networkCase) weighTogether() {
	n := c.Neighbours
	switch share := float64(n.Slow) / float64(max(n.Active, 1)); {
	case n.Active < 2:
	case share >= 0.5:
		c.supports("neighbours.slow", "%d of %d other queue pairs of the device were slow as well", n.Slow, n.Active)
	case share < hardly:
		c.opposes(Possible, "neighbours.slow", "only %d of %d other queue pairs of the device were slow", n.Slow, n.Active)
	}
}

// path is that of the queue pair.
func (c *networkCase) path() verbs.Path {
	switch {
	case len(c.requests) > 0:
		return c.requests[0].Path
	case len(c.Stuck) > 0:
		return c.Stuck[0].Path
	default:
		return verbs.Path{}
	}
}

// lateness is what the heads were late by together.
func (w *waits) lateness() time.Duration {
	var sum time.Duration
	for _, late := range w.delays {
		sum += late
	}
	return sum
}

// failed counts the requests with that status, and says which part of the time that
// was lost they took.
func (w *waits) failed(status verbs.Status) (n int, share float64) {
	var of, all time.Duration
	for _, r := range w.requests {
		all += r.Excess()
		if r.Status == status {
			n++
			of += r.Excess()
		}
	}
	return n, ratio(of, all)
}

// through is how many requests of the queue pair were not slow in the window;
// false when it is not known.
func (c *networkCase) through() (n uint64, known bool) {
	slow := uint64(len(c.Slow))
	return max(c.Completions, slow) - slow, c.HasCompletions
}

// weighRNR notes that waiting for a receive accounts for as much: a peer that is
// not ready drops what follows, which is then sent again as well.
func (c *networkCase) weighRNR() {
	if n, name, _ := rnrReceived().grew(c.Counters); n >= c.count()/2 && c.twoSided() > 0 {
		c.opposes(Possible, name, "the peer had no receive posted (%s)", amount(n, "RNR NAK"))
	}
}
