package diagnose

import "github.com/rdmaradar/rdmaradar/internal/fabric"

func badCableCause() Cause {
	return Cause{
		Name:    "bad_cable",
		Title:   "bad cable, transceiver or port",
		Happens: "The port receives symbols or packets that are broken. What is lost by it is sent again, or the link trains again and stops for that.",
		Needs:   "the error counters of the port, and the retransmission counters of the device",
		For: []string{
			"The port counted physical errors: symbols, checksums, link recoveries.",
			"Packets were sent again meanwhile, about one or more for each slow request.",
		},
		Against: []string{
			"The port counted no physical error.",
			"Nothing was sent again, and the link did not train again.",
			"The retransmissions do not fit the slow requests, or are more than the errors; see packet_loss.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "which end of the link is bad, as a port counts what it receives; whether what was broken is what was lost: it is never certain. Nor a cable further on, whose loss is packet_loss here.",
		Confirm:      "`ethtool -S INTERFACE | grep -E 'symbol_err|crc_errors|corrected_bits'` or `perfquery` grows on this port and not on its neighbours; `mlxlink -d DEVICE -m -c` shows the transceiver.",
		Remedy:       "Clean or replace the cable or transceiver of this port; when the errors stay, change the port at the switch, then the NIC.",
		Source:       []string{"https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html", "https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband"},
		Proven:       Recorded,
		Consequences: []string{"packet_loss", "ack_timeout", "adaptive_retransmission", "network_delay"},
		judge:        judgeBadCable,
	}
}

// physicalErrors are those by which packets are lost. What error correction mended
// is left out: some of that is normal.
func physicalErrors() []family {
	return []family{
		ethtool("rx_pcs_symbol_err_phy", "rx_crc_errors_phy", "rx_symbol_err_phy", "module_bus_stuck", "module_high_temp", "module_bad_shorted"),
		{fabric.SourcePort, []string{"symbol_error", "link_error_recovery", "local_link_integrity_errors", "port_rcv_errors"}},
		hardware("rx_icrc_encapsulated", "CRC errors"),
	}
}

func judgeBadCable(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() {
		return c.not()
	}
	errors, read := c.notePhysicalErrors()
	if errors == 0 {
		if !read {
			c.misses(None, "the error counters of the port")
		}
		return c.not()
	}
	r := newRetransmissions(b.Counters)
	if recoveries, _ := b.Counters.Grew(fabric.SourcePort, "link_error_recovery"); recoveries > 0 && r.all() == 0 {
		c.opposes(Possible, "retransmissions", "nothing was sent again, but the link trained again")
		return c.is(Possible, 0)
	}
	if !c.noteRetransmissions(r) {
		c.Confidence = Possible
		return c.is(Possible, 0)
	}
	// That what was lost is what was broken is not seen.
	c.limit(Likely)
	confidence, explains := c.weighLoss(r)
	if errors < r.all() {
		c.opposes(Possible, "errors", "there were fewer errors than retransmissions")
	}
	return c.is(confidence, explains)
}

func (c *networkCase) notePhysicalErrors() (errors float64, read bool) {
	for _, f := range physicalErrors() {
		n, name, ok := f.grew(c.Counters)
		read = read || ok
		if n > 0 {
			errors += n
			c.supports(name, "the port counted %s", amount(n, "physical error"))
		}
	}
	return errors, read
}

// weighPhysicalErrors notes that a bad cable may be why packets were lost, where the port
// counted as many errors.
func (c *networkCase) weighPhysicalErrors(r retransmissions) {
	aside := *c
	if errors, _ := aside.notePhysicalErrors(); errors >= r.all() {
		c.opposes(Likely, "errors", "the port counted %s: see bad_cable", amount(errors, "physical error"))
	}
}
