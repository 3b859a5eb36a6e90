package diagnose

import (
	"math"
	"time"
)

func ackTimeoutCause() Cause {
	return Cause{
		Name:    "ack_timeout",
		Title:   "no acknowledgement (timeout, black hole)",
		Happens: "Nothing comes back from the peer. The device waits for the timeout of the queue pair, sends again, and gives up after retry_cnt times: the path is a black hole, or the peer is gone.",
		Needs:   "the timeout counter of the device, the timeout of the queue pair, and that nothing else got through meanwhile",
		For: []string{
			"The device counted timeouts.",
			"Requests failed with retry_exc_err.",
			"Requests were late by several timeouts, or are still outstanding, and no other request of the queue pair got through.",
		},
		Against: []string{
			"No timeout was counted.",
			"Other requests of the queue pair got through: then some packets are lost, not all.",
			"The peer told of gaps, or that it had no receive posted: it is there.",
			"Requests waited for less than six timeouts: so few packets may be lost by chance.",
			"Many requests in a row were slow and came through: the path may only take longer than the timeout.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "a black hole from a peer that is gone, nor where the path ends.",
		Confirm:      "`grep . /sys/class/infiniband/*/ports/*/hw_counters/{local_ack_timeout_err,req_transport_retries_exceeded}` grows, on soft-RoCE `completer_retry_err`; `ping` or `ibping` of the peer's address from this port, with the same traffic class.",
		Remedy:       "See whether the peer lives and its port is up, then follow the route to it for a hop that swallows the packets.",
		Source:       []string{"https://man7.org/linux/man-pages/man3/ibv_modify_qp.3.html", "https://github.com/NVIDIA/nccl/issues/902", "https://github.com/openucx/ucx/issues/9590"},
		Proven:       Recorded,
		Consequences: []string{"hang", "network_delay"},
		judge:        judgeAckTimeout,
	}
}

func judgeAckTimeout(b *Burst) Judgement {
	c := newNetworkCase(b)
	r := newRetransmissions(b.Counters)
	if n, share := c.failed(statusRetryExceeded); n > 0 {
		return c.judgeGivenUp(n, share, r)
	}
	if c.excluded() {
		return c.not()
	}
	if !r.known {
		return c.judgeTimeoutPlateau()
	}
	if r.timeouts == 0 {
		c.opposes(None, "timeouts", "no timeout was counted")
		return c.not()
	}
	if c.longPath(r) {
		c.opposes(None, "delays", "all requests took %s, longer than the timeout: they were sent again in vain", short(median(c.delays)))
		return c.not()
	}
	c.supports(r.timeoutsName, "%s after a timeout", amount(r.timeouts, "retransmission"))
	covers := c.weighCount(r.timeoutsName, r.timeouts)
	fits := c.weighSize(r)
	c.weighRNR()
	c.weighSilence(r)
	return c.is(Likely, min(covers, fits))
}

// judgeGivenUp is for requests that the device gave up. The status says that
// nothing answered, and the counter that it was the timeout that said so.
func (c *networkCase) judgeGivenUp(n int, share float64, r retransmissions) Judgement {
	c.Confidence = Certain
	c.supports("status.retry_exc_err", "%d of %d requests failed with retry_exc_err", n, len(c.requests))
	switch {
	case !r.known:
		c.misses(Likely, "the timeout counters of the device")
	case r.timeouts == 0:
		c.opposes(Possible, "timeouts", "no timeout was counted")
	case r.gaps > r.timeouts:
		c.opposes(Likely, r.gapsName, "the peer told of %s", amount(r.gaps, "gap"))
	default:
		c.supports(r.timeoutsName, "%s after a timeout", amount(r.timeouts, "retransmission"))
	}
	return c.is(ofPart(share), share)
}

// judgeTimeoutPlateau is for a device whose counters were not read.
func (c *networkCase) judgeTimeoutPlateau() Judgement {
	c.misses(Possible, "the timeout counters of the device")
	found, is := c.timeoutPlateau()
	if !is {
		return c.not()
	}
	c.supports("delay.plateau", "the delays are multiples of %s, and the timeout is %s", short(found.Length), short(c.path().AckTimeout))
	return c.is(Possible, found.Share)
}

// timeoutPlateau looks for delays at multiples of the timeout, or at several multiples of
// what a device may make of it: with a length that is free, a single plateau is none.
func (c *networkCase) timeoutPlateau() (quantisation, bool) {
	timeout := c.path().AckTimeout
	if found, is := findQuantum(c.delays, []quantum{{Name: "ack_timeout", Length: timeout}}); is {
		return found, true
	}
	found, is := findQuantum(c.delays, []quantum{ackQuantum(timeout)})
	return found, is && found.Multiples > 1
}

// weighSilence looks for signs that something came back.
func (c *networkCase) weighSilence(r retransmissions) {
	if r.gaps >= r.timeouts {
		c.opposes(Possible, r.gapsName, "the peer told of %s: it is there", amount(r.gaps, "gap"))
	}
	through, known := c.through()
	switch {
	case known && through > 0:
		c.opposes(Possible, "completions", "%s of the queue pair got through", amount(float64(through), "other request"))
	case known:
		c.supports("completions", "no other request of the queue pair got through")
	default:
		c.misses(Possible, "how many requests were not slow meanwhile")
	}
	if c.inherited < most {
		c.opposes(Possible, "delays", "requests that lost %s of the time did not wait for it and came through", percent(1-c.inherited))
	}
	if len(c.heads) > 2 {
		c.opposes(Possible, "delays", "%d requests were slow one after the other and came through", len(c.heads))
	}
	if n := c.inARow(r); n < unlikelyInARow {
		c.opposes(Possible, "delays", "requests waited for %s, %s of %s: so few packets may be lost by chance",
			short(c.waited()), amount(n, "timeout"), short(c.path().AckTimeout))
	}
}

// unlikelyInARow is how many timeouts in a row are hardly by chance. Where one packet in
// ten is lost either way, one request in 140 waits for three of them, which a minute of
// such loss brings about, and one in 20,000 for six.
const unlikelyInARow = 6

// inARow is how many timeouts one request can have waited for: no more than were counted,
// and no more than fit in its time, of which what is normal was taken off.
func (c *networkCase) inARow(r retransmissions) float64 {
	timeout := c.path().AckTimeout
	if timeout <= 0 {
		return r.timeouts
	}
	return min(r.timeouts, math.Floor(float64(c.waited())/float64(timeout)+0.1))
}

// waited is how long requests waited: the oldest that still does, or the one in the middle
// of those that came through.
func (c *networkCase) waited() time.Duration {
	var longest time.Duration
	if len(c.delays) > 0 {
		longest = median(c.delays)
	}
	for i := range c.Stuck {
		longest = max(longest, c.Stuck[i].Age)
	}
	return longest
}
