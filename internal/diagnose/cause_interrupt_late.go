package diagnose

func interruptLateCause() Cause {
	return Cause{
		Name:    "interrupt_late",
		Title:   "completion interrupt late",
		Happens: "The poller sleeps until the device tells it of completions, and was woken long after the device had written one: the interrupt was held back (moderation), or came to a CPU that was busy or deep asleep.",
		Needs:   "time stamps of the device (cqe_timestamps), what the polling thread slept for, and for how long",
		For: []string{
			"By the device's time stamp the completion was there for most of the excess time.",
			"The polling thread slept meanwhile, until an event.",
			"Without time stamps: queue pairs to the same peer whose completions others take are not slow.",
		},
		Against: []string{
			"The thread slept for a time of its own choice: see poller_asleep.",
			"It was awake and wanted a CPU: see poller_preempted.",
			"Other queue pairs to the same peer are slow as well.",
		},
		CannotTell:   "without time stamps, a completion that was late from an interrupt that was. With them, a moderated interrupt from one that a busy CPU kept waiting, or from a program that asked for its events too late.",
		Confirm:      "`ethtool -c NETDEV` for moderation, `/proc/interrupts` for the CPU of the device's vector, `perf trace -e irq:irq_handler_entry` for when it came.",
		Remedy:       "Poll without interrupts where latency matters; else turn adaptive moderation off, and bind the vector and the thread to one quiet CPU of the device's node.",
		Source:       []string{"https://man7.org/linux/man-pages/man3/ibv_req_notify_cq.3.html", "https://docs.kernel.org/networking/net_dim.html", "https://docs.kernel.org/core-api/irq/irq-affinity.html"},
		Proven:       Recorded,
		Consequences: []string{"send_queue_full", "send_queue_backlog"},
		PerProcess:   true,
		judge:        judgeInterruptLate,
	}
}

func judgeInterruptLate(b *Burst) Judgement {
	switch {
	case !b.scheduled():
		return b.unscheduled()
	case b.wait() == WaitTimer:
		return Judgement{}
	case !b.Stamped || !b.looked():
		return judgeUnstampedInterrupt(b)
	}
	l := b.lookedLateness(asleep)
	o := gradedBy(l)
	if o.Confidence == None {
		return o.Judgement
	}
	o.limit(Likely)
	o.supports("poller.asleep", "the polling thread slept for %s of the excess time, after the device had written the completions", percent(l.Explains()))
	if b.wait() == WaitUnknown {
		o.misses(Possible, missingSleep)
	}
	return o.Judgement
}

// judgeUnstampedInterrupt has nothing but the other queue pairs to tell an
// interrupt that was late from a completion that was.
func judgeUnstampedInterrupt(b *Burst) Judgement {
	l := b.measure(sleeping)
	if b.wait() != WaitEvent || l.Explains() < most {
		return Judgement{}
	}
	n := b.Neighbours
	if n.ActiveOfPeer-n.SlowOfPeer < 1 || n.ActiveOfPeer <= n.ActiveOfCQ {
		return lacking("when the device wrote the completions: cqe_timestamps tells")
	}
	o := &opinion{Judgement{Confidence: Possible}}
	o.supports("poller.asleep", "the polling thread slept until an event for %s of the excess time", percent(l.Explains()))
	o.supports("neighbours.peer", "%d of %d other queue pairs to the same peer were not slow", n.ActiveOfPeer-n.SlowOfPeer, n.ActiveOfPeer)
	o.misses(Possible, "when the device wrote the completions: cqe_timestamps tells")
	return o.Judgement
}
