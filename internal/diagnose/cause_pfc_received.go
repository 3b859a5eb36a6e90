package diagnose

func pfcReceivedCause() Cause {
	return Cause{
		Name:    "pfc_received",
		Title:   "paused by the network (PFC received)",
		Happens: "The switch tells the port to pause a priority, because it, or a host further on, cannot take more. Nothing of that priority leaves meanwhile.",
		Needs:   "the PFC counters of the port (ethtool -S, mlx5)",
		For: []string{
			"Pause frames were received for a priority.",
			"The time that they paused is about as long as that for which requests were slow, or fills most of the window.",
			"The other queue pairs of the device are slow as well.",
		},
		Against: []string{
			"No pause frame was received.",
			"The pauses are too short; or so common that they fall on slow requests by chance.",
			"Most other queue pairs are not slow.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "whether the priority that was paused is that of the queue pair: it is never certain. Which host began it.",
		Confirm:      "`ethtool -S INTERFACE | grep 'rx_prio._pause'` grows while it is slow; the switch's PFC counters lead on to the host that sends pauses.",
		Remedy:       "Follow the pauses through the switches to the port whose host sends them: it is the one that is slow.",
		Source:       []string{"https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html", "https://github.com/NVIDIA/nccl/issues/378"},
		Proven:       Recorded,
		Consequences: []string{"ecn_throttling", "network_delay"},
		judge:        judgePFCReceived,
	}
}

func judgePFCReceived(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() {
		return c.not()
	}
	confidence, explains := c.weighPause(pfcPause(b.Counters, "rx"), "received")
	return c.is(c.ofPriority(confidence), explains)
}
