package diagnose

import "time"

func sendQueueFullCause() Cause {
	return Cause{
		Name:    "send_queue_full",
		Title:   "Send Queue full",
		Happens: "The process posts more than the Send Queue holds: posts fail with ENOMEM and have to be tried again, and what was taken waits behind a full queue.",
		Needs:   "refused posts, the depth of the queue at each post, what the queue was created for, and the other queue pairs to the same peer",
		For: []string{
			"The provider refused posts because the Send Queue was full (ENOMEM).",
			"The slow requests were posted at a depth of nine tenths of the limit or more.",
			"Most of their time passed behind earlier work of the same queue pair.",
			"Other queue pairs to the same peer are not slow.",
		},
		Against: []string{
			"No post was refused, or the queue was not near its limit: providers return ENOMEM for too many scatter/gather elements or too much inline data as well.",
			"A request was slow by itself, at the head of the queue: then the queue is full because of it.",
			"The other queue pairs to the same peer are slow as well.",
		},
		CannotTell:   "a device or path that has become slow from a process that posts too much, where no other queue pair leads to the same peer: both fill the queue.",
		Confirm:      "`rdma.sq.rejected_posts` with error.type ENOMEM grows, and `rdma.sq.peak_outstanding` is at `rdma.sq.limit`; with perftest, the same path with a smaller --tx-depth is fast.",
		Remedy:       "Count completions before posting, signal more often so that entries are retired, or create the queue pair with a larger max_send_wr.",
		Source:       []string{"https://man7.org/linux/man-pages/man3/ibv_post_send.3.html", "https://github.com/apache/brpc/issues/3202", "https://github.com/apache/brpc/issues/3132", "https://github.com/uccl-project/uccl/issues/267", "https://github.com/spdk/spdk/issues/3195"},
		Proven:       Executed,
		Consequences: []string{"send_queue_backlog"},
		PerProcess:   true,
		judge:        judgeSendQueueFull,
	}
}

func judgeSendQueueFull(b *Burst) Judgement {
	if len(b.Slow) == 0 || b.Rejected+b.Refused == 0 {
		return Judgement{}
	}
	l := b.queueLateness()
	o := gradedBy(l)
	if o.Confidence == None {
		return o.Judgement
	}
	o.limit(Likely)
	o.Explains = b.backlogLateness().Explains()
	if b.Rejected > 0 {
		o.supports("posts.rejected", "the provider refused %s because the Send Queue was full", amount(float64(b.Rejected), "post"))
	} else {
		// At a depth near the limit there is hardly another reason; see weighDepth.
		o.supports("posts.refused", "the provider refused %s, for a reason that was not seen", amount(float64(b.Refused), "post"))
	}
	o.supports("stage.queue", "%s of the excess time passed behind earlier work of the queue pair", percent(l.Explains()))
	o.weighDepth(b)
	o.weighHead(b)
	o.weighPath(b)
	return o.Judgement
}

// weighDepth compares the depth of the queue at the posts with its limit.
func (o *opinion) weighDepth(b *Burst) {
	limit := b.sendLimit()
	if limit == 0 {
		o.misses(Possible, "how many requests the Send Queue holds: the queue pair was created before the start")
		return
	}
	deep := 0
	var deepest uint32
	for i := range b.Slow {
		deepest = max(deepest, b.Slow[i].Outstanding)
		if 10*uint64(b.Slow[i].Outstanding) >= 9*uint64(limit) {
			deep++
		}
	}
	if 2*deep < len(b.Slow) {
		ceiling := Possible
		if b.Rejected == 0 {
			// It was not seen why posts were refused: for another reason, then.
			ceiling = None
		}
		o.opposes(ceiling, "sq.outstanding", "only %d of %d slow requests were posted to a queue near its limit of %d", deep, len(b.Slow), limit)
		return
	}
	o.supports("sq.outstanding", "requests were posted at a depth of up to %d of %d", deepest, limit)
}

// sendLimit is what the queue pair was created for, 0 when it is not known.
func (b *Burst) sendLimit() uint32 {
	if b.Queue != nil && b.Queue.Limit != 0 {
		return b.Queue.Limit
	}
	return b.Slow[0].Setup.SendLimit
}

// weighHead looks for requests that were slow by themselves: what is behind them waits
// for their reason.
func (o *opinion) weighHead(b *Burst) {
	var longest time.Duration
	for _, head := range b.slowHeads() {
		longest = max(longest, alone(head))
	}
	if longest > 0 {
		o.opposes(Possible, "stage.head", "at the head of the queue a request took %s by itself: what is behind it inherits its cause", short(longest))
	}
}

// weighPath asks the other queue pairs to the same peer: what a slow device, path
// or peer does to a queue looks the same as too much work.
func (o *opinion) weighPath(b *Burst) {
	n := b.Neighbours
	switch {
	case n.QueuePairs == 0:
		o.misses(Possible, missingNeighbours)
	case n.ActiveOfPeer == 0:
		o.misses(Possible, "how fast other queue pairs to the same peer are: there is none")
	case n.SlowOfPeer > 0:
		o.opposes(Possible, "neighbours.peer", "%d of %d other queue pairs to the same peer were slow as well", n.SlowOfPeer, n.ActiveOfPeer)
	default:
		o.supports("neighbours.peer", "none of %d other queue pairs to the same peer was slow", n.ActiveOfPeer)
	}
}
