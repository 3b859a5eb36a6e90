package diagnose

func pollerBusyCause() Cause {
	return Cause{
		Name:    "poller_busy",
		Title:   "poller busy with something else",
		Happens: "The thread that takes the completions was on its CPU and did something else than to poll: its own code was late.",
		Needs:   "when the thread last looked in vain, what the kernel did with it since, and the hypervisor's steal time",
		For: []string{
			"Most of the excess time passed between a poll that found nothing and the one that found the completion.",
			"The polling thread had its CPU to itself meanwhile: it was not preempted, asleep, stopped or interrupted.",
		},
		Against: []string{
			"It polled another Completion Queue meanwhile, or took completions from one whose requests were not slow: see completion_queue_starved.",
			"Memory was registered for as long: see memory_registration.",
			"A hypervisor took the CPU away, or interrupts were not watched yet.",
		},
		CannotTell:   "work of the thread from what stops a CPU without the kernel's knowledge, such as firmware (SMI). It is never certain.",
		Confirm:      "`perf record -g -t TID` while it is slow: what is hot beside poll_cq is what it does instead.",
		Remedy:       "Poll more often in the work between polls, or give the polling to a thread of its own.",
		Source:       []string{"https://man7.org/linux/man-pages/man3/ibv_poll_cq.3.html", "https://github.com/NVIDIA/nccl/issues/1426"},
		Proven:       Executed,
		Consequences: []string{"send_queue_full", "send_queue_backlog"},
		PerProcess:   true,
		judge:        judgePollerBusy,
	}
}

func judgePollerBusy(b *Burst) Judgement {
	if !b.scheduled() {
		return b.unscheduled()
	}
	l := b.ownLateness(busy)
	o := gradedBy(l)
	if o.Confidence == None {
		return b.lackingLook()
	}
	o.limit(Likely)
	o.supports("stage.poll", "for %s of the excess time the polling thread was on its CPU and did not poll, up to %s of a request", percent(l.Explains()), short(l.Longest))
	o.weighWatched(l)
	o.weighInterrupts(b)
	o.weighSteal(b, l)
	o.weighRegistrations(b, l)
	if !b.knowsElsewhere() {
		o.weighNeighbours(b)
	}
	return o.Judgement
}

// weighNeighbours guesses from the thread's other Completion Queues whether it may
// have polled those.
func (o *opinion) weighNeighbours(b *Burst) {
	switch n := b.Neighbours; {
	case n.QueuePairs == 0:
		o.misses(Possible, missingNeighbours)
	case n.ActiveOfThread > 0 && n.SlowOfThread == 0:
		o.opposes(Possible, "neighbours.thread", "the thread took completions of %d queue pairs from other Completion Queues, none of them slow", n.ActiveOfThread)
	case n.elsewhere():
		o.misses(Possible, missingThreads)
	case n.SlowOfThread > 0:
		o.supports("neighbours.thread", "%d of %d queue pairs of its other Completion Queues were slow as well", n.SlowOfThread, n.ActiveOfThread)
	}
}

// elsewhere reports whether the thread may take completions of queue pairs of which
// that is not known.
func (n *Neighbours) elsewhere() bool {
	return !n.ThreadsKnown && n.Active > n.ActiveOfCQ+n.ActiveOfThread
}

// lackingLook is the judgement of a cause that a thread on its CPU did not poll,
// where that is not seen: it says what would tell, if there is something to tell.
func (b *Burst) lackingLook() Judgement {
	onCPU := b.measure(unlookedOnCPU)
	if onCPU.Explains() < half {
		return Judgement{}
	}
	return lacking(missingLook)
}
