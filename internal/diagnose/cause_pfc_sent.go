package diagnose

func pfcSentCause() Cause {
	return Cause{
		Name:    "pfc_sent",
		Title:   "this host pauses the network (PFC sent)",
		Happens: "The NIC cannot put away what comes, by slow PCIe or memory, and tells the switch to pause a priority. Peers that send to this host are slow, and so are its own reads.",
		Needs:   "the PFC counters of the port (ethtool -S, mlx5)",
		For: []string{
			"Pause frames were sent for a priority.",
			"The time that they paused is about as long as that for which requests were slow, or fills most of the window.",
			"The slow requests are reads: their payload comes to this host.",
			"Packets were dropped for want of buffers, or the NIC waited for PCIe.",
		},
		Against: []string{
			"No pause frame was sent.",
			"The slow requests are writes or sends, of which only acknowledgements come to this host.",
			"The pauses are too short; or so common that they fall on slow requests by chance.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "whether the priority that was paused is that of the queue pair: it is never certain. Why the host is slow: see pcie_back_pressure. Peers that suffer show pfc_received.",
		Confirm:      "`ethtool -S INTERFACE | grep -E 'tx_prio._pause|tx_pause_storm|rx_discards_phy|outbound_pci_stalled'` grows while it is slow.",
		Remedy:       "Make this host take data faster: PCIe width and ordering, memory on the NIC's node, fewer senders at a time.",
		Source:       []string{"https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html", "https://github.com/meta-pytorch/torchcomms/pull/3054", "https://github.com/kvcache-ai/Mooncake/pull/3205"},
		Proven:       Recorded,
		Consequences: []string{"network_delay"},
		judge:        judgePFCSent,
	}
}

func judgePFCSent(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() {
		return c.not()
	}
	confidence, explains := c.weighPause(pfcPause(b.Counters, "tx"), "sent")
	if confidence == None {
		return c.not()
	}
	c.weighSent()
	c.noteSlowHost()
	return c.is(c.ofPriority(confidence), explains)
}
