package diagnose

func memoryRegistrationCause() Cause {
	return Cause{
		Name:    "memory_registration",
		Title:   "memory registration on the data path",
		Happens: "The process registers and deregisters memory between its work requests. That pins pages and commands the device, takes from microseconds to many milliseconds, and meanwhile its thread does not poll or post.",
		Needs:   "what was registered in the window and how long that took, and when the poller last looked in vain",
		For: []string{
			"Registrations took about as long as the polling thread did not poll.",
			"The thread was neither preempted nor stopped meanwhile.",
			"Or the process posts nothing, and registers most of that time.",
		},
		Against: []string{
			"Registrations took much less time than was lost, or so much more that other threads do them.",
			"The poller was preempted, throttled or stopped.",
		},
		CannotTell:   "registrations of the polling thread from those of another thread that take as long by chance. It is never certain.",
		Confirm:      "`perf trace -s -p PID` shows the time in ioctl on /dev/infiniband/uverbs*, `rdma.mr.registrations` how many.",
		Remedy:       "Register once and keep the registration: a cache of registrations or a pool of registered buffers (in NCCL and UCX the registration cache).",
		Source:       []string{"https://man7.org/linux/man-pages/man3/ibv_reg_mr.3.html", "https://docs.kernel.org/core-api/pin_user_pages.html"},
		Proven:       Executed,
		Consequences: []string{"application_late", "peer_late", "poller_busy", "poller_asleep", "send_queue_full", "send_queue_backlog"},
		PerProcess:   true,
		judge:        judgeMemoryRegistration,
	}
}

func judgeMemoryRegistration(b *Burst) Judgement {
	switch r := b.Registrations; {
	case r.Count == 0 && r.Time == 0:
		return Judgement{}
	case b.Idle != nil:
		return judgeIdleRegistration(b)
	case len(b.Slow) == 0:
		return Judgement{}
	case !b.scheduled():
		return b.unscheduled()
	}
	l := b.ownLateness(free(awayFromCode))
	if l.grade() == None {
		return judgeUnlookedRegistration(b)
	}
	o := gradedBy(l)
	o.limit(Likely)
	o.Explains = min(o.Explains, ratio(b.Registrations.Time, l.Total))
	o.supports("registrations.time", "%d registrations and the deregistrations took %s, and for %s the polling thread did not poll", b.Registrations.Count, short(b.Registrations.Time), short(l.Total))
	switch share := float64(b.Registrations.Time) / float64(max(l.Total, 1)); {
	case share < aPart:
		o.limit(None)
	case share < most:
		o.opposes(Possible, "registrations.time", "that is only %s of it", percent(share))
	case share > 2:
		o.opposes(Possible, "registrations.time", "that is so much more that other threads may have done it")
	}
	return o.Judgement
}

// judgeUnlookedRegistration judges where nothing shows that the poller was late.
func judgeUnlookedRegistration(b *Burst) Judgement {
	l := b.measure(unlookedOnCPU)
	took := b.Registrations.Time
	if l.Explains() < half || ratio(took, l.Total) < half {
		return Judgement{}
	}
	o := &opinion{Judgement{Confidence: Possible}}
	o.supports("registrations.time", "%d registrations and the deregistrations took %s, the requests %s", b.Registrations.Count, short(took), short(l.Total))
	o.misses(Possible, missingLook)
	return o.Judgement
}

func judgeIdleRegistration(b *Burst) Judgement {
	o := &opinion{Judgement{Confidence: Likely, Explains: ratio(b.Registrations.Time, b.Idle.For)}}
	o.supports("registrations.time", "%d registrations and the deregistrations took %s of the %s without a post", b.Registrations.Count, short(b.Registrations.Time), short(b.Idle.For))
	switch {
	case o.Explains < aPart:
		o.limit(None)
	case o.Explains < most:
		o.limit(Possible)
	}
	if b.Idle.SendsOutstanding > 0 {
		o.opposes(None, "sends.outstanding", "%d sends are outstanding", b.Idle.SendsOutstanding)
	}
	return o.Judgement
}
