package diagnose

func portImbalanceCause() Cause {
	return Cause{
		Name:    "port_imbalance",
		Title:   "one port is full while others are not (LAG, ECMP)",
		Happens: "The queue pairs of a device are spread unevenly over its ports: those on the full one wait, those on others do not, for as long as the connections live.",
		Needs:   "the bytes that each port of the device sent, and the rate of the port",
		For: []string{
			"The port of the slow requests sent at least 80 % of what it can.",
			"Another active port of the device sent at most half of that.",
			"Some queue pairs of the device are not slow.",
		},
		Against: []string{
			"The port is not full, or the others are as full.",
			"All queue pairs of the device are slow.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "anything of the members of a bond, which the device counts as one port; nor of paths that collide further on.",
		Confirm:      "`grep . /sys/class/infiniband/DEVICE/ports/*/counters/port_xmit_data` twice; for a bond `ip -s link` of its members.",
		Remedy:       "Spread queue pairs over ports by hand or with more of them per peer, and let the hash see the UDP source port.",
		Source:       []string{"https://docs.kernel.org/networking/bonding.html", "https://github.com/NVIDIA/nccl/issues/1536"},
		Proven:       Recorded,
		Consequences: []string{"network_delay"},
		judge:        judgePortImbalance,
	}
}

func judgePortImbalance(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() || b.Device == nil || b.Device.Port == nil || len(b.Device.Ports) < 2 {
		return c.not()
	}
	port := b.Device.Port
	if port.RateBitsPerSecond == 0 || b.Counters == nil || len(b.Counters.Sent) < 2 {
		c.misses(None, "the bytes that each port sent, and their rates")
		return c.not()
	}
	load := b.Counters.Sent[port.Number] / (port.RateBitsPerSecond / 8 * b.Counters.Span.Seconds())
	least, idlest := c.idlestOther(port.Number)
	if load < 0.8 || least > 0.5*b.Counters.Sent[port.Number] {
		c.opposes(None, "port.load", "the port carried %s of what it can, another one %s of that", percent(load),
			percent(least/max(b.Counters.Sent[port.Number], 1)))
		return c.not()
	}
	c.supports("port.load", "port %d carried %s of what it can, port %d only %s of that", port.Number, percent(load), idlest,
		percent(least/b.Counters.Sent[port.Number]))
	switch n := b.Neighbours; {
	case n.Active == 0:
		c.misses(Possible, "other queue pairs of the device to compare with")
	case n.Slow == n.Active:
		c.opposes(Possible, "neighbours.slow", "all other queue pairs of the device were slow as well")
	default:
		c.supports("neighbours.fast", "%d of %d other queue pairs of the device were not slow", n.Active-n.Slow, n.Active)
	}
	return c.is(Likely, load)
}

// idlestOther is the active port, other than this one, that sent least.
func (c *networkCase) idlestOther(number int) (bytes float64, other int) {
	bytes = c.Counters.Sent[number]
	for _, p := range c.Device.Ports {
		sent, counted := c.Counters.Sent[p.Number]
		if p.Number != number && p.Active() && counted && sent < bytes {
			bytes, other = sent, p.Number
		}
	}
	return bytes, other
}
