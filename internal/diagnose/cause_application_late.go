package diagnose

import "time"

func applicationLateCause() Cause {
	return Cause{
		Name:    "application_late",
		Title:   "application late",
		Happens: "The process stopped to post although nothing is outstanding and it was last given something: its own work, such as a computation, takes long. It is not the network.",
		Needs:   "a process that posted every second and then did not, the order of its last post, completion and receive, and whether it is stopped",
		For: []string{
			"All sends are complete.",
			"The last thing that happened was a receive that was delivered to the process: it is its turn.",
			"Sends and receives take turns, the peer has kept sending, or the process waits for no receive.",
		},
		Against: []string{
			"Sends are outstanding: see hang.",
			"The last thing was a send, and receives are posted: see peer_late.",
			"The process was stopped, or registered memory all the time.",
		},
		CannotTell: "a process that waits for something that is not seen: data that its peer writes into its memory with RDMA writes, other connections, or the end of its work.",
		Confirm:    "`perf top -p PID`, or `py-spy dump --pid PID` for Python: what it does instead of posting; for GPUs, whether a kernel is running.",
		Remedy:     "Look at the computation, data loading or checkpoint of this process: its work requests were not slow.",
		Source:     []string{"https://github.com/NVIDIA/nccl/issues/1324", "https://github.com/NVIDIA/nccl/issues/349"},
		Proven:     Executed,
		PerProcess: true,
		judge:      judgeApplicationLate,
	}
}

func judgeApplicationLate(b *Burst) Judgement {
	idle := b.Idle
	if idle == nil || idle.SendsOutstanding > 0 {
		return Judgement{}
	}
	o := &opinion{Judgement{Confidence: Likely}}
	o.supports("sends.outstanding", "no send is outstanding, and none was posted for %s", short(idle.For))
	o.weighStopped(b)
	switch {
	case idle.peerKeptSending():
		o.supports("peer.active", "the peer kept sending for %s after the last post", short(time.Duration(idle.LastReceive-idle.Since)))
	case !idle.Ordered:
		o.misses(Possible, missingOrder)
	case idle.LastReceive > idle.Since:
		o.supports("last.receive", "a receive was delivered %s after the last post", short(time.Duration(idle.LastReceive-idle.Since)))
		o.weighTurns(idle)
	case idle.waitsForPeer():
		o.opposes(Possible, "last.post", "it posted after the last receive, and %d receives are posted: it may wait for its peer", idle.ReceivesOutstanding)
	default:
		o.misses(Possible, "what the process waits for: writes of its peer into its memory are not seen")
	}
	return o.Judgement
}

// weighStopped notes whether the process is stopped: then nobody knows whether it
// would have been late.
func (o *opinion) weighStopped(b *Burst) {
	switch {
	case b.Poller == nil || b.Poller.State == 0:
		o.misses(Possible, missingState)
	case b.Poller.held():
		o.opposes(Possible, "poller.state", "the polling thread is stopped")
	}
}

// weighTurns asks whether a last receive means that it is the process's turn.
func (o *opinion) weighTurns(idle *Idle) {
	switch {
	case idle.HasReceives && idle.ReceivesOutstanding == 0:
		o.supports("receives.outstanding", "no receive is posted: it waits for none")
	case idle.takesTurns():
		o.supports("turns", "before, it posted %d sends for %d receives, so that it was its turn", idle.Sends, idle.Receives)
	default:
		o.misses(Possible, "whose turn it was: sends and receives do not come one for one, or were not counted")
	}
}

// noticed is within what time a receive is noticed.
const noticed = 2 * time.Second

// peerKeptSending reports whether receives were delivered for half of the silence,
// and for longer than it takes to notice one.
func (i *Idle) peerKeptSending() bool {
	if i.LastReceive <= i.Since {
		return false
	}
	kept := time.Duration(i.LastReceive - i.Since)
	return kept > noticed && kept > i.For/2
}

// turns is how many sends and receives have to be counted to see that they come
// one for one.
const turns = 10

// takesTurns reports whether sends and receives came one for one, but for a tenth.
func (i *Idle) takesTurns() bool {
	less, more := min(i.Sends, i.Receives), max(i.Sends, i.Receives)
	return less >= turns && more-less <= more/10
}

// waitsForPeer reports whether the process may have said something last, and has
// posted receives.
func (i *Idle) waitsForPeer() bool {
	return i.HasReceives && i.ReceivesOutstanding > 0 && (!i.Ordered || i.LastReceive <= i.Since)
}
