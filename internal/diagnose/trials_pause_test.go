package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// pauseTrials are those of causes by which a port does not send.
func pauseTrials() map[string]trials {
	return map[string]trials{
		"pfc_received":   pfcReceivedTrials(),
		"pfc_sent":       pfcSentTrials(),
		"global_pause":   globalPauseTrials(),
		"ecn_throttling": ecnTrials(),
		"credit_wait":    creditTrials(),
	}
}

// paused are pause frames and for how long they paused, in microseconds.
func paused(name string, microseconds uint64) counts {
	return counts{fabric.SourceEthtool: {name: 500, name + "_duration": microseconds}}
}

func pfcReceivedTrials() trials {
	const rx = "rx_prio[p]_pause"
	return trials{
		brings: []trial{
			{"as long as it was slow", nil, mlx5(paused(rx, 45000)), "pfc_received", Likely},
			{"nearly always", slowBy(150, 5*time.Millisecond), mlx5(paused(rx, 900000)), "pfc_received", Likely},
			{"with all others", neighbours(Neighbours{Active: 20, Slow: 15, ActiveOfPeer: 4, SlowOfPeer: 3}), mlx5(paused(rx, 60000)), "pfc_received", Likely},
		},
		against: []trial{
			{name: "none", counters: mlx5()},
			{name: "sent only", counters: mlx5(paused("tx_prio[p]_pause", 45000))},
			{name: "not counted", counters: softRoCE()},
			{name: "much too short", counters: mlx5(paused(rx, 500))},
		},
		lookalikes: []trial{
			{"common, and slow by something else", slowBy(4, 5*time.Millisecond), mlx5(paused(rx, 200000)), "pfc_received", Possible},
			{"only this one is slow", neighbours(Neighbours{Active: 20, Slow: 1, ActiveOfPeer: 4}), mlx5(paused(rx, 45000)), "pfc_received", Possible},
			{"of the whole link", nil, mlx5(paused("rx_global_pause", 45000)), "global_pause", Likely},
		},
	}
}

func pfcSentTrials() trials {
	const tx = "tx_prio[p]_pause"
	reads := operation(verbs.OpRDMARead)
	return trials{
		brings: []trial{
			{"reads of a slow host", reads, mlx5(paused(tx, 45000), inEthtool("rx_discards_phy", 4)), "pfc_sent", Likely},
			{"nearly always", after(slowBy(150, 5*time.Millisecond), reads), mlx5(paused(tx, 900000)), "pfc_sent", Likely},
		},
		against: []trial{
			{name: "none", burst: reads, counters: mlx5()},
			{name: "received only", burst: reads, counters: mlx5(paused("rx_prio[p]_pause", 45000))},
			{name: "not counted", burst: reads, counters: softRoCE()},
		},
		lookalikes: []trial{
			{"sends, by something else", nil, mlx5(paused(tx, 45000)), "pfc_sent", Possible},
			{"the network paused as well", nil, mlx5(paused(tx, 45000), paused("rx_prio[p]_pause", 45000)), "pfc_received", Likely},
			{
				"because PCIe does not take it", after(slowBy(150, 5*time.Millisecond), reads),
				mlx5(paused(tx, 900000), inEthtool("outbound_pci_stalled_wr", 95)), "pcie_back_pressure", Likely,
			},
		},
	}
}

func globalPauseTrials() trials {
	return trials{
		brings: []trial{
			{"received", nil, mlx5(paused("rx_global_pause", 45000)), "global_pause", Likely},
			{"nearly always", slowBy(150, 5*time.Millisecond), mlx5(paused("rx_global_pause", 960000)), "global_pause", Certain},
			{"for more than half of the time", slowBy(150, 5*time.Millisecond), mlx5(paused("rx_global_pause", 700000)), "global_pause", Likely},
			{"sent", operation(verbs.OpRDMARead), mlx5(paused("tx_global_pause", 45000)), "global_pause", Likely},
		},
		against: []trial{
			{name: "none", counters: mlx5()},
			{name: "of a priority", counters: mlx5(paused("rx_prio[p]_pause", 45000))},
			{name: "not counted", counters: softRoCE()},
		},
		lookalikes: []trial{
			{"sent, and the requests leave", nil, mlx5(paused("tx_global_pause", 45000)), "global_pause", Possible},
			{"too short", nil, mlx5(paused("rx_global_pause", 10000)), "global_pause", Possible},
		},
	}
}

func ecnTrials() trials {
	cnps := func(n uint64) counts { return mlx5(inHardware("rp_cnp_handled", n)) }
	return trials{
		brings: []trial{
			{"many notifications", nil, cnps(400), "ecn_throttling", Likely},
			{"irdma", nil, add(counts{}, inHardware("cnpHandled", 400), inHardware("RTO", 0), inHardware("Nak Sequence Error", 0)), "ecn_throttling", Likely},
		},
		against: []trial{
			{name: "none", counters: mlx5()},
			{name: "not counted", counters: softRoCE()},
		},
		lookalikes: []trial{
			{"a few, as always", slowBy(100, 5*time.Millisecond), cnps(5), "network_delay", Likely},
			{"of healthy queue pairs beside it", neighbours(Neighbours{Active: 50}), cnps(400), "ecn_throttling", Possible},
			{"others to the same peer are not slow", neighbours(Neighbours{Active: 8, Slow: 1, ActiveOfPeer: 5}), cnps(400), "ecn_throttling", Possible},
			{"small requests", func(b *Burst) { each(b, func(r *verbs.Completion) { r.Bytes = 64 }) }, cnps(400), "ecn_throttling", Possible},
			{"far too late for it", slowBy(5, 150*time.Millisecond), cnps(400), "ecn_throttling", Possible},
			{"the receiver is not ready", slowBy(2, 4*time.Millisecond), mlx5(inHardware("rp_cnp_handled", 400), inHardware("rnr_nak_retry_err", 2)), "receiver_not_ready", Likely},
			{"packets are lost", nil, mlx5(inHardware("rp_cnp_handled", 400), inHardware("packet_seq_err", 10)), "packet_loss", Certain},
		},
	}
}

// onInfiniBand gives the burst a port of 400 Gb/s.
func onInfiniBand(b *Burst) {
	b.Device.Port = &fabric.Port{Number: 1, State: "ACTIVE", LinkLayer: fabric.LinkLayerInfiniBand, RateBitsPerSecond: 400e9}
}

func creditTrials() trials {
	waited := func(ticks, words uint64) counts {
		return mlx5(inPort("port_xmit_wait", ticks), inPort("port_xmit_data", words))
	}
	return trials{
		brings: []trial{
			// A tick is eight bytes of 50 GB/s.
			{"as long as it was slow", onInfiniBand, waited(3e8, 1e9), "credit_wait", Likely},
			{"nearly always", after(slowBy(150, 5*time.Millisecond), onInfiniBand), waited(6e9, 1e9), "credit_wait", Likely},
			{"the rate is not known", after(onInfiniBand, func(b *Burst) { b.Device.PCIAddress, b.Device.Port.RateBitsPerSecond = "0000:18:00.0", 0 }), waited(3e8, 1e9), "credit_wait", Possible},
		},
		against: []trial{
			{name: "never", burst: onInfiniBand, counters: waited(0, 1e9)},
			{name: "Ethernet", counters: waited(2e9, 1e9)},
			{name: "not counted", burst: onInfiniBand, counters: softRoCE()},
		},
		lookalikes: []trial{
			{"a little, as always", onInfiniBand, waited(1e6, 1e9), "network_delay", Likely},
			{"common, and slow by something else", onInfiniBand, waited(2e9, 1e9), "credit_wait", Possible},
			{"the port is full", onInfiniBand, waited(3e8, 11e9), "credit_wait", Possible},
			{"only this one is slow", after(onInfiniBand, neighbours(Neighbours{Active: 20, Slow: 1, ActiveOfPeer: 3, SlowOfPeer: 1})), waited(3e8, 1e9), "credit_wait", Possible},
		},
	}
}
