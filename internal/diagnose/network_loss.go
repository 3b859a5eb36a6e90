package diagnose

import (
	"math"
	"slices"
	"time"
)

// gapTime is more than a retransmission after a gap takes, which begins a round
// trip after the loss.
const gapTime = 10 * time.Millisecond

// weighLoss notes how retransmissions compare with the slow requests in number and
// size. It returns how sure it is that they are what was slow, and which part of
// it they explain.
func (c *networkCase) weighLoss(r retransmissions) (Confidence, float64) {
	covers := c.weighCount("retransmissions", r.all())
	fits := c.weighSize(r)
	c.weighRNR()
	c.weighThrough(r)
	if n, _ := c.failed(statusRetryExceeded); n > 0 {
		c.opposes(Possible, "status.retry_exc_err", "%s given up after several attempts", amount(float64(n), "request"))
	}
	// What follows a gap may be over so soon that others had it and were not slow.
	own := c.alone() && (r.timeouts >= r.gaps || c.Neighbours.Active == 0)
	if covers >= 1 && fits >= most && own {
		return Certain, min(covers, fits)
	}
	return Likely, min(covers, fits)
}

// weighSize compares what retransmissions can take with what the requests were
// late by. A device may wait for one to four times the timeout (IBTA 9.7.6.1.3).
// soft-RoCE may wait for less, as its timer runs on from an earlier request.
func (c *networkCase) weighSize(r retransmissions) (fits float64) {
	timeout := c.path().AckTimeout
	if timeout == 0 && r.timeouts > r.gaps {
		c.misses(Possible, "the acknowledgement timeout of the queue pair")
		return 1
	}
	// The numbers are foreign: their product may be more than a duration holds.
	longest := time.Duration(min(r.gaps*float64(gapTime)+r.timeouts*4*float64(timeout), math.MaxInt64/2))
	fits = 1
	if late := c.lateness(); late > 0 {
		fits = ratio(longest, late)
	}
	if fits < 0.5 {
		c.opposes(Possible, "retransmissions.time", "they take %s at most, and %s were lost", short(longest), short(c.lateness()))
	}
	exact := r.timeouts > r.gaps && r.timeoutsName != "completer_retry_err"
	if late := median(c.delays); exact && len(c.delays) > 0 && late < timeout*9/10 {
		c.opposes(Possible, "ack_timeout", "requests were late by %s, less than the timeout of %s", short(late), short(timeout))
	}
	return fits
}

// weighThrough looks at the requests that were not slow: some packets are lost
// where others get through. A path that only takes longer than the timeout makes
// all of them slow, and devices send again in vain.
func (c *networkCase) weighThrough(r retransmissions) {
	if r.gaps >= r.timeouts {
		return
	}
	through, known := c.through()
	switch {
	case !known:
		c.misses(Possible, "how many requests were not slow meanwhile")
	case float64(through) >= c.count():
		c.supports("completions", "%s of the queue pair were not slow", amount(float64(through), "other request"))
	default:
		c.opposes(Possible, "completions", "only %s of the queue pair came through and were not slow", amount(float64(through), "other request"))
	}
}

// longPath reports whether the path only takes longer than the timeout: every
// request is slow, each by about the same, which is no multiple of the timeout, and
// nobody told of a gap. Devices send again in vain then.
func (c *networkCase) longPath(r retransmissions) bool {
	through, known := c.through()
	timeout := c.path().AckTimeout
	if !known || float64(through) >= c.count() || len(c.delays) < 5 || r.gaps > 0 || timeout == 0 {
		return false
	}
	spread := float64(slices.Max(c.delays)-slices.Min(c.delays)) / float64(max(median(c.delays), 1))
	atMultiples := float64(countExplained(c.delays, timeout)) / float64(len(c.delays))
	return spread <= 0.2 && median(c.delays) >= timeout && atMultiples < leastShare
}
