package diagnose

func globalPauseCause() Cause {
	return Cause{
		Name:    "global_pause",
		Title:   "the whole link was paused (802.3x)",
		Happens: "Flow control of the whole link is on instead of PFC: a pause stops all traffic of the port, whatever its priority. Received, the network throttles this host; sent, this host is behind.",
		Needs:   "the global pause counters of the port (ethtool -S, mlx5)",
		For: []string{
			"Global pause frames were received, or were sent and the slow requests are reads.",
			"The time that they paused is about as long as that for which requests were slow, or fills most of the window.",
			"The other queue pairs of the device are slow as well.",
		},
		Against: []string{
			"There was no global pause frame.",
			"The pauses are too short; or so common that they fall on slow requests by chance.",
			"They were sent, and the slow requests are writes or sends.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "who began it: a pause spreads from switch to switch.",
		Confirm:      "`ethtool -S INTERFACE | grep global_pause` grows while it is slow; `ethtool -a INTERFACE` shows whether it is on.",
		Remedy:       "Turn global pause off on both ends of the link (ethtool -A INTERFACE rx off tx off) and use PFC for the priority of RDMA.",
		Source:       []string{"https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html", "https://github.com/NVIDIA/daqiri/issues/250"},
		Proven:       Recorded,
		Consequences: []string{"ecn_throttling", "network_delay"},
		judge:        judgeGlobalPause,
	}
}

func judgeGlobalPause(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() {
		return c.not()
	}
	received, sent := globalPause(b.Counters, "rx"), globalPause(b.Counters, "tx")
	if sent.frames == 0 || received.time >= sent.time && received.frames > 0 {
		return c.is(c.weighPause(received, "received"))
	}
	confidence, explains := c.weighPause(sent, "sent")
	c.weighSent()
	c.noteSlowHost()
	c.Remedy = "This host sends the pauses: make it take data faster, and use PFC for the priority of RDMA instead of global pause."
	return c.is(confidence, explains)
}
