package diagnose

import (
	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// smallReadRequest is below the default of PCIe, 512 bytes.
const smallReadRequest = 512

func pcieSettingsCause() Cause {
	return Cause{
		Name:    "pcie_settings",
		Title:   "PCIe settings: ACS, ordering, IOMMU, read requests",
		Happens: "A setting makes the NIC's way to memory longer: ACS sends traffic between GPU and NIC through the root complex, the IOMMU translates every access, strict ordering or small read requests keep transactions waiting.",
		Needs:   "the configuration space of the NIC and of the bridges above it, which takes CAP_SYS_ADMIN, and the PCIe stall counters",
		For: []string{
			"ACS redirects requests or completions on a bridge above the NIC, and the memory is a GPU's.",
			"The IOMMU translates accesses of the NIC.",
			"Relaxed ordering is off and the payload comes to this host.",
			"MaxReadReq is below 512 bytes and the payload leaves this host.",
			"The NIC waited for PCIe meanwhile.",
		},
		Against: []string{
			"None of these is set.",
			"The NIC did not wait for PCIe: then it is possible at most.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "which of several settings it is, or whether the machine was ever faster: a setting that is always so explains no sudden change.",
		Confirm:      "`lspci -vvv -s ADDRESS | grep -E 'ACSCtl|DevCtl|MaxReadReq|RlxdOrd'` of the NIC and the bridges above it, `cat /sys/bus/pci/devices/ADDRESS/iommu_group/type`.",
		Remedy:       "Turn off ACS redirection on the bridges above NIC and GPU, boot with iommu=pt, and allow relaxed ordering, as far as isolation permits it.",
		Source:       []string{"https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html", "https://github.com/NVIDIA/nccl/issues/949", "https://github.com/kvcache-ai/Mooncake/pull/3205"},
		Proven:       Recorded,
		Consequences: []string{"pcie_back_pressure", "pfc_sent", "global_pause", "network_delay"},
		judge:        judgePCIeSettings,
	}
}

func judgePCIeSettings(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() {
		return c.not()
	}
	if b.Device == nil || b.Device.PCI == nil {
		return c.not()
	}
	if c.noteSettings(b.Device.PCI) == 0 {
		if b.Device.PCI.Control == nil {
			c.misses(None, "the configuration space of the NIC")
		}
		return c.not()
	}
	if b.meanBytes() < largeRequest {
		c.opposes(None, "bytes", "the requests are too small for it to show")
		return c.not()
	}
	confidence, explains := c.weighStalls()
	if confidence == None {
		c.Confidence = Possible
		return c.is(Possible, 0)
	}
	return c.is(confidence, explains)
}

// noteSettings returns how many of them matter for these requests.
func (c *networkCase) noteSettings(pci *fabric.PCIDevice) int {
	before := len(c.For)
	if bridge := redirects(pci); bridge != "" && c.ofGPU() {
		c.supports("pcie.acs", "ACS redirects traffic on the bridge %s, and the memory is a GPU's", bridge)
	}
	if pci.IOMMU == fabric.IOMMUStrict || pci.IOMMU == fabric.IOMMULazy {
		c.supports("pcie.iommu", "the IOMMU translates every access of the NIC (%s)", pci.IOMMU)
	}
	if pci.Control != nil {
		if !pci.Control.RelaxedOrdering && c.incoming() >= 0.5 {
			c.supports("pcie.relaxed_ordering", "relaxed ordering is off")
		}
		if size := pci.Control.MaxReadRequest; size > 0 && size < smallReadRequest && c.incoming() < 0.5 {
			c.supports("pcie.max_read_request", "the NIC reads %d bytes at a time", size)
		}
	}
	return len(c.For) - before
}

// redirects is the lowest bridge that sends traffic between devices below it up to
// the root complex, "" when none does.
func redirects(pci *fabric.PCIDevice) string {
	for _, bridge := range pci.Bridges {
		if bridge.ACS != nil && (bridge.ACS.RequestRedirect || bridge.ACS.CompletionRedirect) {
			return bridge.Address
		}
	}
	return ""
}

// ofGPU reports whether the memory of the slow requests is another device's.
func (c *networkCase) ofGPU() bool {
	for _, r := range c.requests {
		if r.Memory.Kind != verbs.MemoryDMABuf && r.Memory.Kind != verbs.MemoryPeer {
			return false
		}
	}
	return len(c.requests) > 0
}
