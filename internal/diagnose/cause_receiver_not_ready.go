package diagnose

import "github.com/rdmaradar/rdmaradar/internal/verbs"

func receiverNotReadyCause() Cause {
	return Cause{
		Name:    "receiver_not_ready",
		Title:   "receiver not ready (RNR)",
		Happens: "The peer has no receive posted. It refuses the message and says how long to wait before it is sent again: its min_rnr_timer, from 10 µs to 655 ms.",
		Needs:   "the RNR counter of the device, and operations that need a receive",
		For: []string{
			"The device received RNR NAKs, about one or more for each slow request.",
			"The operations need a receive: sends, and writes with immediate data.",
			"What requests were late by has plateaus at several multiples of one time of the min_rnr_timer table. The peer's timer counts; only this side's is known.",
			"What requests were late by is one to three times the min_rnr_timer of this side: both ends of a connection are often set up alike.",
			"Requests failed with rnr_retry_exc_err.",
		},
		Against: []string{
			"No RNR NAK was received.",
			"All slow requests are one-sided: they need no receive, but may be behind one that does.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "why the peer had none posted: its process is late, its Receive Queue is too short, or a shared one is drained by others.",
		Confirm:      "On this host `grep . /sys/class/infiniband/*/ports/*/hw_counters/{rnr_nak_retry_err,rcvd_rnr_err}` grows; on the peer's `out_of_buffer`, or `send_rnr_err` of soft-RoCE.",
		Remedy:       "Post receives earlier or more of them at the peer; where that cannot be, give its queue pair a short min_rnr_timer (1 is 10 µs, 0 is 655 ms).",
		Source:       []string{"https://man7.org/linux/man-pages/man3/ibv_modify_qp.3.html", "https://github.com/ydb-platform/nbs/issues/5790"},
		Proven:       Executed,
		Consequences: []string{"packet_loss", "ack_timeout", "network_delay"},
		judge:        judgeReceiverNotReady,
	}
}

func judgeReceiverNotReady(b *Burst) Judgement {
	c := newNetworkCase(b)
	if n, share := c.failed(statusRNRRetryExceeded); n > 0 {
		// The status says it, whoever polled it when.
		c.supports("status.rnr_retry_exc_err", "%d of %d requests failed with rnr_retry_exc_err", n, len(c.requests))
		c.Confidence = Certain
		return c.is(ofPart(share), share)
	}
	if c.excluded() {
		return c.not()
	}
	n, name, read := rnrReceived().grew(b.Counters)
	switch {
	case !read:
		c.misses(None, "the RNR counters of the device")
		return c.not()
	case n == 0:
		c.opposes(None, name, "no RNR NAK was received")
		return c.not()
	}
	c.supports(name, "%s received, for %s", amount(n, "RNR NAK"), amount(c.count(), "slow request"))
	c.weighTwoSided()
	covers := c.weighCount(name, n)
	plateau := c.rnrPlateau()
	if !plateau {
		c.weighOwnRNRTimer()
	}
	if !plateau && c.Neighbours.Slow > c.Neighbours.SlowOfPeer {
		c.opposes(Possible, "neighbours.slow", "queue pairs to other peers are slow too, and the delays have no plateau")
	}
	if plateau && covers >= 1 && c.alone() {
		return c.is(Certain, covers)
	}
	return c.is(Likely, covers)
}

func (c *networkCase) weighTwoSided() {
	if share := c.twoSided(); share > 0 {
		c.supports("operation", "%s of the requests need a receive at the peer", percent(share))
		return
	}
	c.opposes(Possible, "operation", "no slow request needs a receive at the peer")
}

// rnrPlateau reports whether the delays lie at several multiples of a time of the
// min_rnr_timer table. The timer that counts is the peer's and is not known: a single
// plateau would lie at one of the 32 times by chance.
func (c *networkCase) rnrPlateau() bool {
	table := make([]quantum, 0, 32)
	for code := range uint8(32) {
		table = append(table, rnrQuantum(verbs.RNRTimer(code)))
	}
	found, is := findQuantum(c.delays, table)
	if !is || found.Multiples < 2 {
		return false
	}
	c.supports("delay.plateau", "the delays are at %d multiples of about %s, a time of the min_rnr_timer table", found.Multiples, found.Length)
	return true
}

// mostWaits is how many times in a row a request may wait for a timer that is compared
// with that of this side: multiples beyond are too near to one another to tell.
const mostWaits = 3

// weighOwnRNRTimer notes that the delays are what the peer's timer would make of them if
// it were set to what this side's is. That is likely and not known, and so no more than a
// remark: it makes nothing surer.
func (c *networkCase) weighOwnRNRTimer() {
	timer := c.path().MinRNRTimer
	if timer <= 0 || len(c.delays) == 0 || c.twoSided() == 0 {
		return
	}
	waited := 0
	for _, d := range c.delays {
		if times, at := nearest(d, timer); at && times <= mostWaits {
			waited++
		}
	}
	if float64(waited) < leastShare*float64(len(c.delays)) {
		return
	}
	are := "are"
	if waited == 1 {
		are = "is"
	}
	c.supports("delay.rnr_timer", "%d of %s %s one to three times %s, the min_rnr_timer of this side, which the peer may have too",
		waited, amount(float64(len(c.delays)), "delay"), are, short(timer))
}
