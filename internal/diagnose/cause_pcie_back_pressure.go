package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

func pcieBackPressureCause() Cause {
	return Cause{
		Name:    "pcie_back_pressure",
		Title:   "PCIe back-pressure at the NIC",
		Happens: "The NIC waits for credits of PCIe before it may read what it is to send, or write what it has received: the root complex, the IOMMU or memory is slower than the network.",
		Needs:   "the PCIe stall counters of the NIC (ethtool -S, mlx5)",
		For: []string{
			"Reads of the NIC stalled, and the slow requests send; or its writes stalled, and the slow requests read.",
			"The part of the time that it stalled is about that for which requests were slow, or most of the window.",
			"Packets were dropped, or pauses sent, because PCIe did not take them.",
		},
		Against: []string{
			"The NIC did not stall.",
			"It stalled in the direction that the slow requests do not use.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "whose requests the NIC waited with, of all that use it: it is never certain. Why: see pcie_degraded, pcie_settings and numa_misplacement.",
		Confirm:      "`ethtool -S INTERFACE | grep outbound_pci` while it is slow.",
		Remedy:       "Look at the PCIe settings (relaxed ordering, MaxReadReq, ACS, IOMMU), and keep buffers and threads on the NIC's NUMA node.",
		Source:       []string{"https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html", "https://github.com/kvcache-ai/Mooncake/pull/3205", "https://github.com/meta-pytorch/torchcomms/pull/3054"},
		Proven:       Recorded,
		Consequences: []string{"pfc_sent", "global_pause", "numa_misplacement", "network_delay"},
		judge:        judgePCIeBackPressure,
	}
}

func judgePCIeBackPressure(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() {
		return c.not()
	}
	return c.is(c.weighStalls())
}

// weighStalls notes how PCIe stalls compare with the time for which requests were
// slow, and returns how sure it is that they are it.
func (c *networkCase) weighStalls() (Confidence, float64) {
	direction, other := "outbound_pci_stalled_rd", "outbound_pci_stalled_wr"
	if c.incoming() >= 0.5 {
		direction, other = other, direction
	}
	share, read := c.Counters.Grew(fabric.SourceEthtool, direction)
	events, _ := c.Counters.Grew(fabric.SourceEthtool, direction+"_events")
	if !read {
		c.misses(None, "the PCIe stall counters of the NIC (ethtool -S)")
		return None, 0
	}
	if n, _ := c.Counters.Grew(fabric.SourceEthtool, other); n >= hardly && share < hardly {
		c.opposes(Possible, other, "the NIC stalled for %s of the last second, in the direction that these requests do not use", percent(n))
		return Possible, 0
	}
	if share == 0 && events == 0 {
		c.opposes(None, direction, "the NIC did not wait for PCIe")
		return None, 0
	}
	// The share is of the second before the counters were read, at most.
	counted := time.Duration(share * float64(min(c.Counters.Span, time.Second)))
	confidence, explains := c.weighTime(counted)
	c.supports(direction, "the NIC waited for PCIe credits for %s of the last second", percent(share))
	if events > 0 {
		c.supports(direction+"_events", "in %s it waited for more than 30 %% of the time", amount(events, "second"))
	}
	if n, _ := c.Counters.Grew(fabric.SourceEthtool, "outbound_pci_buffer_overflow"); n > 0 {
		c.supports("outbound_pci_buffer_overflow", "%s dropped because PCIe did not take them", amount(n, "packet"))
	}
	if share < hardly {
		c.opposes(Possible, direction, "it waited for %s of the last second only", percent(share))
	}
	c.weighTogether()
	// It is counted while any request of the device waits, not only those that were slow.
	return min(max(confidence, Possible), Likely), explains
}
