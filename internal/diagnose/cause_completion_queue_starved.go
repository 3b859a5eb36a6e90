package diagnose

func completionQueueStarvedCause() Cause {
	return Cause{
		Name:    "completion_queue_starved",
		Title:   "Completion Queue starved by another",
		Happens: "One thread takes the completions of several Completion Queues, and was so long at another one that this one waited.",
		Needs:   "when the thread last looked in vain, what the kernel did with it since, and the other queue pairs whose completions it takes",
		For: []string{
			"Most of the excess time passed between a poll of this Completion Queue that found nothing and the one that found the completion, with the thread on its CPU.",
			"In the same window it took completions from other Completion Queues, and none of those was slow.",
			"That was so again and again.",
		},
		Against: []string{
			"Requests of the thread's other Completion Queues were slow as well: see poller_busy.",
			"The thread takes completions from no other Completion Queue.",
			"Some queue pairs that share the Completion Queue were not slow.",
		},
		CannotTell:   "once or twice, a thread that was busy with something else while its other Completion Queues had nothing to take.",
		Confirm:      "`rdma.cq.number` and `rdma.poll.thread.id` of slow requests name one queue and a thread that also delivers from others; `perf record -g -t TID` shows it in the loop of the other.",
		Remedy:       "Take a bounded number of completions from each queue in turn, or give the starved one a thread of its own.",
		Source:       []string{"https://man7.org/linux/man-pages/man3/ibv_poll_cq.3.html", "https://github.com/apache/brpc/issues/3202"},
		Proven:       Recorded,
		Consequences: []string{"send_queue_full", "send_queue_backlog"},
		PerProcess:   true,
		judge:        judgeCompletionQueueStarved,
	}
}

// again is how often a thread has to be late before it is no coincidence that none
// of its other queues was slow.
const again = 3

func judgeCompletionQueueStarved(b *Burst) Judgement {
	n := b.Neighbours
	switch {
	case !b.scheduled():
		return b.unscheduled()
	case n.QueuePairs == 0:
		return lacking(missingNeighbours)
	case n.SlowOfThread > 0, n.ActiveOfThread == 0 && !n.elsewhere():
		return Judgement{}
	case n.ActiveOfThread == 0 && n.Slow > n.SlowOfCQ:
		return lacking(missingThreads)
	}
	l := b.ownLateness(away)
	o := gradedBy(l)
	if o.Confidence == None {
		return b.lackingLook()
	}
	o.limit(Likely)
	o.supports("stage.poll", "for %s of the excess time the polling thread was on its CPU and did not poll this Completion Queue", percentage(l.Explains()))
	if n.ActiveOfThread > 0 {
		o.supports("neighbours.thread", "meanwhile it took completions of %d queue pairs from other Completion Queues, none of them slow", n.ActiveOfThread)
	} else {
		o.misses(Possible, missingThreads)
	}
	if n.SlowOfCQ < n.ActiveOfCQ {
		o.opposes(Possible, "neighbours.cq", "only %d of %d other queue pairs of the Completion Queue were slow", n.SlowOfCQ, n.ActiveOfCQ)
	}
	if l.Episodes < again {
		o.misses(Possible, "whether it happens again: it was so late only once or twice")
	}
	o.weighSteal(b, l)
	o.weighRegistrations(b, l)
	return o.Judgement
}
