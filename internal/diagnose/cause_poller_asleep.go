package diagnose

func pollerAsleepCause() Cause {
	return Cause{
		Name:    "poller_asleep",
		Title:   "poller asleep between polls",
		Happens: "The thread that takes the completions slept for a time of its own choice, or was held up in the kernel by something else, and did not poll meanwhile.",
		Needs:   "what the kernel did with the polling thread meanwhile, and what it slept for",
		For: []string{
			"The polling thread was asleep for most of the excess time, since it last looked in vain.",
			"It slept for a time of its own choice, as in nanosleep, or was held up in the kernel, as by a page fault or a lock.",
		},
		Against: []string{
			"It waits for events, such as those of a completion channel: such a sleep ends when the completion comes and is not late.",
			"It registered memory meanwhile.",
			"It wanted a CPU or was stopped instead.",
		},
		CannotTell:   "a time of its own choice from being held up in the kernel, unless it was seen what it sleeps in.",
		Confirm:      "`cat /proc/PID/task/TID/wchan` several times, or `strace -T -p TID`: hrtimer_nanosleep is a sleep of its own choice.",
		Remedy:       "Poll without sleeping between, sleep for less than the latency that matters, or wait for the events of a completion channel.",
		Source:       []string{"https://man7.org/linux/man-pages/man3/ibv_get_cq_event.3.html", "https://man7.org/linux/man-pages/man3/ibv_poll_cq.3.html"},
		Proven:       Executed,
		Consequences: []string{"send_queue_full", "send_queue_backlog"},
		PerProcess:   true,
		OffCPU:       true,
		judge:        judgePollerAsleep,
	}
}

func judgePollerAsleep(b *Burst) Judgement {
	if !b.scheduled() {
		return b.unscheduled()
	}
	// Without a poll that came back in vain, nothing tells a sleep that was too
	// long from one until the completion.
	l := b.lookedLateness(asleep)
	o := gradedBy(l)
	if o.Confidence == None {
		return o.Judgement
	}
	o.supports("poller.asleep", "the polling thread slept for %s of the excess time, up to %s of a request", percent(l.Explains()), short(l.Longest))
	switch {
	case b.sleptByChoice():
		o.supports("poller.wait", "it did not wait for an event")
	case b.wait() == WaitTimer:
		o.limit(Likely)
		o.supports("poller.wait", "it was seen to sleep for a time of its own choice")
	case b.wait() == WaitEvent:
		o.opposes(None, "poller.wait", "it waits for events")
	default:
		o.misses(Possible, missingSleep)
	}
	o.weighRegistrations(b, l)
	return o.Judgement
}
