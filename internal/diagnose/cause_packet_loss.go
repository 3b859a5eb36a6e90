package diagnose

func packetLossCause() Cause {
	return Cause{
		Name:    "packet_loss",
		Title:   "packets lost and sent again",
		Happens: "The path drops packets while others get through. The peer tells of the gap, or the device's timeout does, and everything from there on is sent again.",
		Needs:   "the retransmission counters of the device; where it was the timeout that noticed, the timeout of the queue pair and how many requests were not slow meanwhile",
		For: []string{
			"The device counted sequence errors or retransmissions, at least one for every two slow requests.",
			"What the requests were late by is no longer than these retransmissions take.",
			"Other requests of the queue pair were not slow meanwhile.",
		},
		Against: []string{
			"Nothing was sent again.",
			"The retransmissions are too few, or take too short or too long.",
			"The peer had no receive posted as often: it then drops what follows.",
			"All requests were slow: the path may only take longer than the timeout.",
			"The port counted as many physical errors: see bad_cable.",
			"Gaps may have been of queue pairs that were active and not slow: then it is not certain.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "where they were lost: a full switch buffer, a bad cable further on, or a wrong priority that is not lossless.",
		Confirm:      "`grep . /sys/class/infiniband/*/ports/*/hw_counters/{packet_seq_err,implied_nak_seq_err,out_of_sequence}` grows, on soft-RoCE `rcvd_seq_err` and `completer_retry_err`; the drop counters of the switches say where.",
		Remedy:       "Find the drop: buffer discards of the switches on the path, and whether the traffic class of the queue pair is lossless on every hop.",
		Source:       []string{"https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html", "https://github.com/NVIDIA/nccl/issues/902"},
		Proven:       Executed,
		Consequences: []string{"ack_timeout", "adaptive_retransmission", "network_delay"},
		judge:        judgePacketLoss,
	}
}

func judgePacketLoss(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() {
		return c.not()
	}
	r := newRetransmissions(b.Counters)
	if !c.noteRetransmissions(r) {
		return c.not()
	}
	if c.longPath(r) {
		c.opposes(None, "delays", "all requests took %s, longer than the timeout: they were sent again in vain", short(median(c.delays)))
		return c.not()
	}
	c.weighPhysicalErrors(r)
	return c.is(c.weighLoss(r))
}

// noteRetransmissions reports whether there were any.
func (c *networkCase) noteRetransmissions(r retransmissions) bool {
	switch {
	case !r.known:
		c.misses(None, "the retransmission counters of the device")
		return false
	case r.all() == 0:
		c.opposes(None, "retransmissions", "nothing was sent again")
		return false
	}
	if r.gaps > 0 {
		c.supports(r.gapsName, "%s sent again after a gap was noticed, for %s", amount(r.gaps, "time"), amount(c.count(), "slow request"))
	}
	if r.timeouts > 0 {
		c.supports(r.timeoutsName, "%s after a timeout, for %s", amount(r.timeouts, "retransmission"), amount(c.count(), "slow request"))
	}
	return true
}
