package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// pcieTrials are those of causes between the NIC and memory.
func pcieTrials() map[string]trials {
	return map[string]trials{
		"pcie_degraded":        degradedTrials(),
		"pcie_back_pressure":   backPressureTrials(),
		"pcie_settings":        settingsTrials(),
		"numa_misplacement":    numaTrials(),
		"context_cache_misses": contextTrials(),
	}
}

// onPCIe gives the burst a port of 400 Gb/s on PCIe 5.0 of that many lanes, of 16.
func onPCIe(lanes int) func(*Burst) {
	return func(b *Burst) {
		ports := []fabric.Port{{Number: 1, State: "ACTIVE", LinkLayer: fabric.LinkLayerEthernet, RateBitsPerSecond: 400e9}}
		node := 0
		b.Device.Ports, b.Device.Port, b.Device.NUMANode = ports, &ports[0], &node
		b.Device.PCI = &fabric.PCIDevice{
			PCIFunction: fabric.PCIFunction{
				Link:    fabric.PCIeLink{GigatransfersPerSecond: 32, Lanes: lanes},
				MaxLink: fabric.PCIeLink{GigatransfersPerSecond: 32, Lanes: 16},
				Control: &fabric.PCIeControl{RelaxedOrdering: true, MaxReadRequest: 4096, MaxPayload: 256},
			},
			Bridges: []fabric.PCIFunction{{Address: "0000:15:01.0", ACS: &fabric.ACS{Supported: true}}},
			IOMMU:   fabric.IOMMUPassthrough,
		}
	}
}

func degradedTrials() trials {
	full := mlx5(inPort("port_xmit_data", 7e9), counts{fabric.SourceAER: {"aer_dev_correctable": 40}})
	return trials{
		brings: []trial{
			{"at its ceiling", onPCIe(8), full, "pcie_degraded", Likely},
			{"not loaded", onPCIe(8), inPort("port_xmit_data", 1e9), "pcie_degraded", Possible},
		},
		against: []trial{
			{name: "as wide as it can be", burst: onPCIe(16), counters: full},
			{name: "small requests", burst: after(onPCIe(8), func(b *Burst) { each(b, func(r *verbs.Completion) { r.Bytes = 64 }) }), counters: full},
			{name: "faster than the port", burst: after(onPCIe(8), func(b *Burst) { b.Device.Ports[0].RateBitsPerSecond = 100e9 }), counters: full},
			{name: "soft-RoCE", counters: softRoCE()},
		},
		lookalikes: []trial{
			{"packets are lost", onPCIe(8), mlx5(inPort("port_xmit_data", 1e9), inHardware("packet_seq_err", 10)), "packet_loss", Certain},
			{"back-pressure on a whole link", onPCIe(16), mlx5(inPort("port_xmit_data", 7e9), inEthtool("outbound_pci_stalled_rd", 40)), "pcie_back_pressure", Possible},
		},
	}
}

// stalled are seconds in which the NIC waited for PCIe that part of the time.
func stalled(direction string, share uint64) counts {
	return inEthtool("outbound_pci_stalled_"+direction, share)
}

func backPressureTrials() trials {
	busy := slowBy(150, 5*time.Millisecond)
	return trials{
		brings: []trial{
			{"what is sent is read slowly", busy, mlx5(stalled("rd", 85)), "pcie_back_pressure", Likely},
			{"what comes is written slowly", after(busy, operation(verbs.OpRDMARead)), mlx5(stalled("wr", 50), inEthtool("outbound_pci_stalled_wr_events", 1)), "pcie_back_pressure", Likely},
			{"for less than it was slow", busy, mlx5(stalled("rd", 20)), "pcie_back_pressure", Possible},
		},
		against: []trial{
			{name: "none", burst: busy, counters: mlx5()},
			{name: "not counted", burst: busy, counters: softRoCE()},
		},
		lookalikes: []trial{
			{"in the other direction", busy, mlx5(stalled("wr", 85)), "network_delay", Likely},
			{"the network paused", busy, mlx5(stalled("rd", 10), paused("rx_prio[p]_pause", 900000)), "pfc_received", Likely},
			{"both, so that it is in doubt", busy, mlx5(stalled("rd", 90), paused("rx_prio[p]_pause", 900000)), "pcie_back_pressure", Possible},
		},
	}
}

func settingsTrials() trials {
	busy := slowBy(150, 5*time.Millisecond)
	gpuBehindACS := func(b *Burst) {
		b.Device.PCI.Bridges[0].ACS.RequestRedirect = true
		each(b, func(r *verbs.Completion) { r.Memory.Kind = verbs.MemoryPeer })
	}
	translating := func(b *Burst) { b.Device.PCI.IOMMU = fabric.IOMMUStrict }
	strict := func(b *Burst) { b.Device.PCI.Control.RelaxedOrdering = false }
	small := func(b *Burst) { b.Device.PCI.Control.MaxReadRequest = 128 }
	return trials{
		brings: []trial{
			{"ACS and back-pressure", after(busy, onPCIe(16), gpuBehindACS), mlx5(stalled("rd", 60)), "pcie_settings", Likely},
			{"small read requests and back-pressure", after(busy, onPCIe(16), small), mlx5(stalled("rd", 60)), "pcie_settings", Likely},
			{"strict ordering and back-pressure", after(busy, onPCIe(16), operation(verbs.OpRDMARead), strict), mlx5(stalled("wr", 60)), "pcie_settings", Likely},
			{"IOMMU without back-pressure, and too little known", after(onPCIe(16), translating), inPort("port_xmit_data", 1e9), "pcie_settings", Possible},
		},
		against: []trial{
			{name: "all well", burst: after(busy, onPCIe(16)), counters: mlx5(stalled("rd", 60))},
			{name: "ACS and host memory", burst: after(busy, onPCIe(16), gpuBehindACS, func(b *Burst) {
				each(b, func(r *verbs.Completion) { r.Memory.Kind = verbs.MemoryHost })
			}), counters: mlx5(stalled("rd", 60))},
			{name: "strict ordering of what leaves", burst: after(busy, onPCIe(16), strict), counters: mlx5(stalled("rd", 60))},
			{name: "configuration space not read", burst: after(busy, onPCIe(16), func(b *Burst) { b.Device.PCI.Control = nil })},
			{name: "small requests", burst: after(busy, onPCIe(16), small, func(b *Burst) {
				each(b, func(r *verbs.Completion) { r.Bytes = 64 })
			}), counters: mlx5(stalled("rd", 60))},
		},
		lookalikes: []trial{
			{"no back-pressure", after(onPCIe(16), gpuBehindACS), mlx5(), "network_delay", Likely},
			{"packets are lost", after(onPCIe(16), gpuBehindACS), mlx5(inHardware("packet_seq_err", 10)), "packet_loss", Certain},
		},
	}
}

// far puts the threads on node 1, and the NIC on node 0.
func far(b *Burst) {
	node := 0
	b.Device.NUMANode = &node
	b.Device.Nodes = func(cpu uint32) (int, bool) { return int(cpu), true }
}

func moved(b *Burst) {
	each(b, func(r *verbs.Completion) { r.PollerScheduling.Migrations = 1 })
}

func numaTrials() trials {
	by := slowBy(100, 28*time.Microsecond)
	return trials{
		brings: []trial{
			{"late by a crossing since it moved", after(by, far, moved), mlx5(), "numa_misplacement", Possible},
			{"late by a crossing, as always", after(by, far), inPort("port_xmit_data", 1e9), "numa_misplacement", Possible},
			{"the GPU is far", after(by, func(b *Burst) { b.Device.GPU = fabric.RelationSYS }), inPort("port_xmit_data", 1e9), "numa_misplacement", Possible},
		},
		against: []trial{
			{name: "the same node", burst: after(by, far, func(b *Burst) { b.Device.Nodes = func(uint32) (int, bool) { return 0, true } }), counters: mlx5()},
			{name: "nodes not known", burst: after(by, far, func(b *Burst) { b.Device.Nodes = func(uint32) (int, bool) { return 0, false } }), counters: mlx5()},
			{name: "soft-RoCE has no node", burst: by, counters: softRoCE()},
			{name: "late by much more, and not moved", burst: after(slowBy(100, 2*time.Millisecond), far), counters: inPort("port_xmit_data", 1e9)},
			{name: "the GPU is near", burst: after(by, func(b *Burst) { b.Device.GPU = fabric.RelationPXB }), counters: mlx5()},
		},
		lookalikes: []trial{
			{"late by milliseconds", far, mlx5(), "network_delay", Likely},
			{"the receiver is not ready", after(slowBy(100, 30*time.Microsecond), far, moved), mlx5(inHardware("rnr_nak_retry_err", 100)), "receiver_not_ready", Likely},
			{"PCIe back-pressure", after(slowBy(150, 5*time.Millisecond), far), mlx5(stalled("rd", 60)), "pcie_back_pressure", Likely},
		},
	}
}

func contextTrials() trials {
	many := neighbours(Neighbours{Active: 2000, Slow: 900, ActiveOfPeer: 10, SlowOfPeer: 1, QueuePairs: 4000})
	by := slowBy(100, 50*time.Microsecond)
	return trials{
		brings: []trial{
			{"many queue pairs and little else", after(by, many), inPort("port_xmit_data", 1e9), "context_cache_misses", Possible},
		},
		against: []trial{
			{name: "few", burst: after(by, neighbours(Neighbours{Active: 20, QueuePairs: 24})), counters: mlx5()},
			{name: "many that are idle", burst: after(by, neighbours(Neighbours{Active: 20, QueuePairs: 4000})), counters: mlx5()},
			{name: "far too late for it", burst: many, counters: mlx5()},
		},
		lookalikes: []trial{
			{"many queue pairs and loss", after(by, many), mlx5(inHardware("packet_seq_err", 2000)), "packet_loss", Likely},
			{"many queue pairs and one slow peer", after(by, neighbours(Neighbours{Active: 2000, Slow: 10, ActiveOfPeer: 10, SlowOfPeer: 10, QueuePairs: 4000})), mlx5(), "network_delay", Likely},
		},
	}
}
