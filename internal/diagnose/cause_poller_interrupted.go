package diagnose

func pollerInterruptedCause() Cause {
	return Cause{
		Name:    "poller_interrupted",
		Title:   "poller interrupted",
		Happens: "Interrupts and softirqs ran on the CPU of the polling thread for so long that it could not poll.",
		Needs:   "how long interrupts took the CPU from the polling thread, which is watched from the first slow request on until ten seconds after the last, and when it last looked in vain",
		For: []string{
			"Interrupts took most of the excess time from the polling thread, since it last looked in vain.",
			"But for that the requests would have been within the threshold.",
		},
		Against: []string{
			"The device is a program of the kernel, such as soft-RoCE: its own work is done in softirqs.",
			"The thread slept or was preempted instead.",
		},
		CannotTell:   "what a burst began with, and one of less than a fifth of a second at all, unless something was slow in the ten seconds before. Which interrupts they were. That of soft-RoCE from that of other network traffic.",
		Confirm:      "`grep . /proc/softirqs /proc/interrupts` twice for the column of its CPU, or `perf trace -e irq:softirq_entry,irq:irq_handler_entry -C CPU`.",
		Remedy:       "Move the interrupts of network and disks off the CPU of the polling thread (smp_affinity, irqbalance's banned CPUs, RPS).",
		Source:       []string{"https://docs.kernel.org/networking/scaling.html", "https://docs.kernel.org/core-api/irq/irq-affinity.html"},
		Proven:       Recorded,
		Consequences: []string{"send_queue_full", "send_queue_backlog"},
		PerProcess:   true,
		judge:        judgePollerInterrupted,
	}
}

func judgePollerInterrupted(b *Burst) Judgement {
	if !b.scheduled() {
		return b.unscheduled()
	}
	l := b.lookedLateness(interrupted)
	o := gradedBy(l)
	if o.Confidence == None {
		return judgeUnlookedInterrupts(b)
	}
	o.supports("poller.interrupted", "interrupts took %s of the excess time from the polling thread, up to %s of a request", percent(l.Explains()), short(l.Longest))
	o.weighInterrupts(b)
	o.weighSoftware(b)
	return o.Judgement
}

// judgeUnlookedInterrupts judges where it was not seen when the poller last looked:
// the interrupts may have come before that.
func judgeUnlookedInterrupts(b *Burst) Judgement {
	l := b.pollLateness(interrupted)
	o := gradedBy(l)
	if o.Confidence == None {
		return b.lackingInterrupts()
	}
	o.Explains = 0
	o.supports("poller.interrupted", "interrupts took %s of the excess time from the polling thread", percent(l.Explains()))
	o.misses(Possible, missingLook)
	o.weighSoftware(b)
	return o.Judgement
}

func (o *opinion) weighSoftware(b *Burst) {
	switch {
	case b.Device == nil:
		o.misses(Possible, "whether the device is hardware, or works in interrupts itself")
	case b.software():
		o.opposes(Possible, "device.software", "the device is a program of the kernel, which works in softirqs")
	}
}
