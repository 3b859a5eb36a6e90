package diagnose

func adaptiveRetransmissionCause() Cause {
	return Cause{
		Name:    "adaptive_retransmission",
		Title:   "adaptive retransmission of RoCE",
		Happens: "The NIC sends again after a short timeout of its own instead of the one of the queue pair. A packet was lost at the end of a message, or the acknowledgement was only late.",
		Needs:   "the counter roce_adp_retrans of mlx5",
		For: []string{
			"The NIC counted adaptive retransmissions, at least one for every two slow requests.",
			"The delays are shorter than the timeout of the queue pair; often about 10 ms.",
		},
		Against: []string{
			"There were no adaptive retransmissions.",
			"The peer told of as many gaps: that is loss.",
			"The delays are longer than the timeout of the queue pair.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "whether a packet was lost or the acknowledgement was late.",
		Confirm:      "`grep . /sys/class/infiniband/*/ports/*/hw_counters/roce_adp_retrans*` grows; `mlxreg -d DEVICE --reg_name ROCE_ACCL --get` says whether it is on.",
		Remedy:       "Find why acknowledgements are lost or late; whether adaptive retransmission helps is decided by roce_adp_retrans_en of the register ROCE_ACCL.",
		Source:       []string{"https://docs.nvidia.com/networking/display/AdaptiveRetransmissionParametersControl/Enablement+and+Capabilities", "https://github.com/NVIDIA/nccl/issues/1555"},
		Proven:       Recorded,
		Consequences: []string{"ack_timeout", "network_delay"},
		judge:        judgeAdaptiveRetransmission,
	}
}

func judgeAdaptiveRetransmission(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() {
		return c.not()
	}
	// Only mlx5 has it: where it is not there, nothing is missing.
	n, name, _ := hardware("roce_adp_retrans").grew(b.Counters)
	if n == 0 {
		return c.not()
	}
	c.supports(name, "%s, for %s", amount(n, "adaptive retransmission"), amount(c.count(), "slow request"))
	covers := c.weighCount(name, n)
	if r := newRetransmissions(b.Counters); r.gaps >= c.count()/2 {
		c.opposes(Possible, r.gapsName, "packets were lost: %s noticed", amount(r.gaps, "gap"))
	}
	if timeout := c.path().AckTimeout; timeout > 0 && median(c.delays) > timeout {
		c.opposes(Possible, "ack_timeout", "requests were late by %s, more than the timeout of %s", short(median(c.delays)), short(timeout))
	}
	c.weighRNR()
	if found, is := findQuantum(c.delays, []quantum{adaptiveQuantum()}); is {
		c.supports("delay.plateau", "the delays are multiples of about %s", found.Length)
		if covers >= 1 && c.alone() {
			return c.is(Certain, covers)
		}
	}
	return c.is(Likely, covers)
}
