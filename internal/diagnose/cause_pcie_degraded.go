package diagnose

import "github.com/rdmaradar/rdmaradar/internal/fabric"

// largeRequest is what takes long enough on PCIe for its rate to show.
const largeRequest = 64 << 10

func pcieDegradedCause() Cause {
	return Cause{
		Name:    "pcie_degraded",
		Title:   "PCIe link degraded in width or speed",
		Happens: "A PCIe link between the NIC and the CPU runs narrower or slower than both of its ends could. Data cannot come or go faster than that, however fast the network is.",
		Needs:   "the PCIe links above the device, and the bytes that the port carried",
		For: []string{
			"A link runs at less than what both ends allow, and at less than the port's rate.",
			"The device carried about as much as this link can.",
			"The link had errors: AER, signal integrity.",
		},
		Against: []string{
			"All links run as fast and wide as they can, or faster than the port.",
			"Much less was carried than the link can.",
			"The requests are small.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "a link that saves power when idle from one that is degraded, unless it is loaded.",
		Confirm:      "`lspci -vv -s ADDRESS | grep -E 'LnkCap|LnkSta'` of the NIC and of every bridge above it, under load.",
		Remedy:       "Reseat the card or riser, look at the slot's lanes and speed in the firmware's setup, and replace what has AER errors.",
		Source:       []string{"https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci", "https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html"},
		Proven:       Recorded,
		Consequences: []string{"pcie_back_pressure", "pfc_sent", "global_pause", "network_delay"},
		judge:        judgePCIeDegraded,
	}
}

func judgePCIeDegraded(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() {
		return c.not()
	}
	if b.Device == nil || b.Device.PCI == nil {
		c.misses(None, "the PCIe links above the device")
		return c.not()
	}
	now, known := b.Device.PCI.BandwidthBytesPerSecond()
	limit, limited := b.Device.PCI.LimitBytesPerSecond()
	rate, rated := b.Device.RateBytesPerSecond()
	if !known || !limited {
		return c.not()
	}
	if now >= 0.9*limit || rated && now >= rate {
		c.opposes(None, "pcie.link", "the PCIe links are as fast as they can be, or faster than the port")
		return c.not()
	}
	c.supports("pcie.link", "a PCIe link carries %.1f GB/s instead of %.1f GB/s", now/1e9, limit/1e9)
	c.notePCIeErrors()
	if b.meanBytes() < largeRequest {
		c.opposes(None, "bytes", "the requests are too small for it to show")
		return c.not()
	}
	return c.weighCeiling(now)
}

// weighCeiling compares what was carried with what the link can.
func (c *networkCase) weighCeiling(bandwidth float64) Judgement {
	carried, known := c.carried()
	if !known {
		c.misses(Possible, "how many bytes the port carried")
		return c.is(Possible, 0)
	}
	share := carried / (bandwidth * c.Counters.Span.Seconds())
	if share < mostly {
		c.opposes(Possible, "pcie.load", "it carried %s of what it can", percent(share))
		return c.is(Possible, 0)
	}
	c.supports("pcie.load", "it carried %s of what it can", percent(min(share, 1)))
	return c.is(Likely, min(share, 1))
}

// carried is how many bytes the port carried in its busier direction.
func (c *networkCase) carried() (float64, bool) {
	sent, known := c.Counters.GrewAny(fabric.SourcePort, "port_xmit_data")
	received, _ := c.Counters.GrewAny(fabric.SourcePort, "port_rcv_data")
	return max(sent, received), known
}

func (c *networkCase) notePCIeErrors() {
	for _, f := range []family{
		{fabric.SourceAER, []string{"aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"}},
		ethtool("rx_pci_signal_integrity", "tx_pci_signal_integrity"),
	} {
		if n, name, _ := f.grew(c.Counters); n > 0 {
			c.supports(name, "the PCIe link had %s", amount(n, "error"))
		}
	}
}
