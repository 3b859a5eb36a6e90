package diagnose

import "time"

// Throttled requests are larger than a packet, and a rate that is halved some
// times over does not stop them for long.
const (
	throttledBytes = 4096
	throttledDelay = 100 * time.Millisecond
	fewestCNPs     = 10
)

func ecnThrottlingCause() Cause {
	return Cause{
		Name:    "ecn_throttling",
		Title:   "throttled by congestion control (ECN, DCQCN)",
		Happens: "A switch marks packets as congested, the receiver sends congestion notifications (CNP), and this host's NIC lowers the rate of the queue pair. Large requests take longer, without a plateau.",
		Needs:   "the congestion counters of the device",
		For: []string{
			"Congestion notifications slowed down queues of this host: ten at least, and one for every two slow requests.",
			"The requests are larger than a packet, and late by less than 100 ms.",
		},
		Against: []string{
			"No congestion notification was handled.",
			"The requests are small, or late by more than throttling takes.",
			"They may be of other queue pairs of the device, which were not slow; or others to the same peer were not slow.",
			"The peer had no receive posted as often.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "throttling from other congestion on the same path, as notifications are common where it is on: never more than likely. Pauses and loss are told apart by their own counters.",
		Confirm:      "`grep . /sys/class/infiniband/*/ports/*/hw_counters/rp_cnp_handled` grows here, and `np_ecn_marked_roce_packets` at the receiver.",
		Remedy:       "Find the congested link: many senders to one receiver, or paths that collide; then spread the traffic, or tune the ECN thresholds.",
		Source:       []string{"https://conferences.sigcomm.org/sigcomm/2015/pdf/papers/p523.pdf", "https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html"},
		Proven:       Recorded,
		Consequences: []string{"network_delay"},
		judge:        judgeECNThrottling,
	}
}

func judgeECNThrottling(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() {
		return c.not()
	}
	n, name, read := hardware("rp_cnp_handled", "rx_cnp_pkts", "cnpHandled").grew(b.Counters)
	switch {
	case !read:
		c.misses(None, "the congestion counters of the device")
		return c.not()
	case n == 0:
		c.opposes(None, name, "no congestion notification was handled")
		return c.not()
	}
	c.supports(name, "%s slowed down queues of this host", amount(n, "congestion notification"))
	covers := c.weighCount(name, n)
	c.weighNotifications(name, n)
	c.weighPeer()
	if bytes := b.meanBytes(); bytes < throttledBytes {
		c.opposes(Possible, "bytes", "the requests have %.0f bytes, too few for a lower rate to show", bytes)
	}
	if late := median(c.delays); late > throttledDelay {
		c.opposes(Possible, "delay", "requests were late by %s, longer than throttling takes", short(late))
	}
	if r := newRetransmissions(b.Counters); r.all() >= c.count()/2 {
		c.opposes(Possible, "retransmissions", "packets were sent again (%s)", amount(r.all(), "retransmission"))
	}
	c.weighRNR()
	return c.is(Likely, covers)
}

// weighNotifications asks whether enough of them can have been of this queue pair: a rate
// is lowered by many, and healthy queue pairs get some as well.
func (c *networkCase) weighNotifications(name string, n float64) {
	healthy := max(c.Neighbours.Active-c.Neighbours.Slow, 0)
	switch {
	case n < fewestCNPs:
		c.opposes(Possible, name, "so few do not lower a rate much")
	case n < fewestCNPs*float64(healthy+1):
		c.opposes(Possible, name, "they may be of the %d other queue pairs that were not slow", healthy)
	}
}
