package diagnose

func completionQueueStarvedCause() Cause {
	return Cause{
		Name:    "completion_queue_starved",
		Title:   "Completion Queue starved by another",
		Happens: "One thread takes the completions of several Completion Queues, and was so long at another one that this one waited.",
		Needs:   "when the thread last looked in vain, what the kernel did with it since, and the other queue pairs whose completions it takes",
		For: []string{
			"Most of the excess time passed between a poll of this Completion Queue that found nothing and the one that found the completion, with the thread on its CPU.",
			"Meanwhile it polled other Completion Queues, without a pause.",
			"Where that is not seen: it took completions from other Completion Queues, none of those was slow, and that was so again and again.",
		},
		Against: []string{
			"It polled nothing for most of that time, or requests of its other Completion Queues were slow as well: see poller_busy.",
			"The thread takes completions from no other Completion Queue.",
			"Some queue pairs that share the Completion Queue were not slow.",
		},
		CannotTell:   "where it is not seen which queue it polled, a thread that was busy with something else while its other Completion Queues had nothing to take.",
		Confirm:      "`rdma.cq.number` and `rdma.poll.thread.id` of slow requests name one queue and a thread that also delivers from others; `perf record -g -t TID` shows it in the loop of the other.",
		Remedy:       "Take a bounded number of completions from each queue in turn, or give the starved one a thread of its own.",
		Source:       []string{"https://man7.org/linux/man-pages/man3/ibv_poll_cq.3.html"},
		Proven:       Executed,
		Consequences: []string{"send_queue_full", "send_queue_backlog"},
		PerProcess:   true,
		judge:        judgeCompletionQueueStarved,
	}
}

// again is how often a thread has to be late before it is no coincidence that none
// of its other queues was slow.
const again = 3

func judgeCompletionQueueStarved(b *Burst) Judgement {
	switch {
	case !b.scheduled():
		return b.unscheduled()
	case b.knowsElsewhere():
		return judgePolledElsewhere(b)
	default:
		return judgeTookElsewhere(b)
	}
}

// judgePolledElsewhere judges where it was seen what the thread polled.
func judgePolledElsewhere(b *Burst) Judgement {
	l := b.ownLateness(elsewhere)
	o := gradedBy(l)
	if o.Confidence == None {
		return b.lackingLook()
	}
	o.limit(Likely)
	o.supports("poll.elsewhere", "for %s of the excess time the polling thread polled other Completion Queues and not this one, up to %s of a request", percent(l.Explains()), short(l.Longest))
	o.weighWatched(l)
	o.weighQueue(b)
	return o.Judgement
}

// judgeTookElsewhere judges by where the thread's completions came from.
func judgeTookElsewhere(b *Burst) Judgement {
	n := b.Neighbours
	switch {
	case n.QueuePairs == 0:
		return lacking(missingNeighbours)
	case n.SlowOfThread > 0, n.ActiveOfThread == 0 && !n.elsewhere():
		return Judgement{}
	case n.ActiveOfThread == 0 && n.Slow > n.SlowOfCQ:
		return lacking(missingThreads)
	}
	l := b.ownLateness(free(away))
	o := gradedBy(l)
	if o.Confidence == None {
		return b.lackingLook()
	}
	o.limit(Likely)
	o.supports("stage.poll", "for %s of the excess time the polling thread was on its CPU and did not poll this Completion Queue", percent(l.Explains()))
	if n.ActiveOfThread > 0 {
		o.supports("neighbours.thread", "meanwhile it took completions of %d queue pairs from other Completion Queues, none of them slow", n.ActiveOfThread)
	} else {
		o.misses(Possible, missingThreads)
	}
	if l.Episodes < again {
		o.misses(Possible, "whether it happens again: it was so late only once or twice")
	}
	o.weighQueue(b)
	o.weighInterrupts(b)
	o.weighSteal(b, l)
	o.weighRegistrations(b, l)
	return o.Judgement
}

// weighQueue looks at the queue pairs that share the Completion Queue.
func (o *opinion) weighQueue(b *Burst) {
	if n := b.Neighbours; n.SlowOfCQ < n.ActiveOfCQ {
		o.opposes(Possible, "neighbours.cq", "only %d of %d other queue pairs of the Completion Queue were slow", n.SlowOfCQ, n.ActiveOfCQ)
	}
}
