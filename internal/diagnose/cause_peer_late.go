package diagnose

func peerLateCause() Cause {
	return Cause{
		Name:    "peer_late",
		Title:   "peer late",
		Happens: "The process has sent all it had, has posted receives, and nothing comes: the process at the other end is late. It is not this host, and hardly the network.",
		Needs:   "a process that posted every second and then did not, the order of its last post, completion and receive, its posted receives, and whether it is stopped",
		For: []string{
			"All sends are complete, and receives are posted.",
			"The last thing that happened was a send of this process: it is the peer's turn.",
			"Sends and receives take turns.",
		},
		Against: []string{
			"Sends are outstanding: see hang.",
			"A receive was delivered after the last post: see application_late.",
			"The process was stopped.",
		},
		CannotTell: "a late peer from an answer that is lost on its way, which the peer's side shows as a slow or stuck send; and from a process that keeps receives posted and has nothing to say.",
		Confirm:    "Look at the same moment at the peer's host: its process has posted nothing (application_late), or its sends are stuck.",
		Remedy:     "Look at the peer: which process it is, and what it does.",
		Source:     []string{"https://github.com/NVIDIA/nccl/issues/1324", "https://github.com/NVIDIA/nccl/issues/1730"},
		Proven:     Executed,
		PerProcess: true,
		judge:      judgePeerLate,
	}
}

func judgePeerLate(b *Burst) Judgement {
	idle := b.Idle
	switch {
	case idle == nil || idle.SendsOutstanding > 0:
		return Judgement{}
	case !idle.HasReceives:
		return lacking("how many receives are posted: the queue pair was not seen from its start")
	case !idle.waitsForPeer(), idle.peerKeptSending():
		return Judgement{}
	}
	o := &opinion{Judgement{Confidence: Likely}}
	o.supports("sends.outstanding", "all sends are complete, and none was posted for %s", short(idle.For))
	o.weighStopped(b)
	o.supports("receives.outstanding", "%d receives are posted", idle.ReceivesOutstanding)
	switch {
	case !idle.Ordered:
		o.misses(Possible, missingOrder)
	case idle.LastReceive == 0:
		o.misses(Possible, "whether the peer ever answers: no receive was seen")
	case idle.LastDelivery < idle.Since:
		o.misses(Possible, "whether the last post reached the peer: its completion was not asked for or not seen")
	case !idle.takesTurns():
		o.misses(Possible, "whose turn it was: sends and receives do not come one for one, or were not counted")
	default:
		o.supports("turns", "no receive was delivered since the last post; before, it posted %d sends for %d receives, so that it was the peer's turn", idle.Sends, idle.Receives)
	}
	return o.Judgement
}
