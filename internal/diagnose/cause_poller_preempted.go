package diagnose

func pollerPreemptedCause() Cause {
	return Cause{
		Name:    "poller_preempted",
		Title:   "poller preempted",
		Happens: "The thread that takes the completions wanted a CPU and another thread had it. The completions waited for it.",
		Needs:   "what the kernel did with the polling thread meanwhile, and cpu.stat of its cgroups",
		For: []string{
			"The polling thread wanted a CPU and had none for most of the excess time, and did not look at its Completion Queue since.",
			"It is known which thread ran instead.",
			"But for that the requests would have been within the threshold.",
		},
		Against: []string{
			"Polls found nothing for most of the time: then the completion itself was late.",
			"The CPU quota of the thread's cgroup accounts for it: see poller_throttled.",
			"The thread slept or was stopped instead.",
		},
		CannotTell:   "when within an absence the completion arrived, other than by time stamps of the device.",
		Confirm:      "`perf sched record -- sleep 5` while it lasts; of that `perf sched timehist --tid TID` shows its waits, `perf sched latency` who had the CPU.",
		Remedy:       "Give the polling thread a CPU of its own: pin it and keep other threads away (cpuset, isolcpus, or the static CPU manager of Kubernetes).",
		Source:       []string{"https://docs.kernel.org/scheduler/sched-eevdf.html", "https://github.com/NVIDIA/nccl/issues/2033", "https://github.com/NVIDIA/nccl/issues/2182"},
		Proven:       Executed,
		Consequences: []string{"send_queue_full", "send_queue_backlog"},
		PerProcess:   true,
		OffCPU:       true,
		judge:        judgePollerPreempted,
	}
}

func judgePollerPreempted(b *Burst) Judgement {
	if !b.scheduled() {
		return b.unscheduled()
	}
	l := b.offLateness(runnable)
	o := gradedBy(l)
	if o.Confidence == None {
		return o.Judgement
	}
	o.supports("poller.runnable", "the polling thread wanted a CPU and had none for %s of the excess time, up to %s of a request", percent(l.Explains()), short(l.Longest))
	who, known := b.instead()
	if known {
		o.supports("thread.instead", "%s ran on its CPU instead", who)
	}
	o.weighQuota(b, l, known)
	o.weighInferred(l)
	return o.Judgement
}

// weighQuota notes whether it was the CPU quota that kept the thread from its CPU.
func (o *opinion) weighQuota(b *Burst, l lateness, known bool) {
	switch share := b.throttles(l); {
	case b.Throttling == nil:
		o.misses(Possible, missingThrottling)
	case share < aPart:
		o.supports("cgroup.throttled", "no CPU quota accounts for it")
	case share < most || known && !b.fitsThrottling(l):
		o.opposes(Possible, "cgroup.throttled", "the CPU quota of its cgroup took %s away", short(b.Throttling.Time))
	default:
		o.opposes(None, "cgroup.throttled", "the CPU quota of its cgroup took %s away", short(b.Throttling.Time))
	}
}
