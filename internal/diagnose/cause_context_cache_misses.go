package diagnose

// manyQueuePairs is a guess of the order of magnitude: devices differ in how many
// contexts their caches keep, and other contexts take room as well.
const manyQueuePairs = 1024

func contextCacheMissesCause() Cause {
	return Cause{
		Name:    "context_cache_misses",
		Title:   "too many queue pairs for the NIC's cache",
		Happens: "The NIC keeps the contexts of queue pairs, memory regions and queues in host memory and a part of them in a cache. With many in use it has to fetch them first.",
		Needs:   "how many queue pairs the device has",
		For: []string{
			"The device has 1024 queue pairs or more, and 256 or more of them were used in the window.",
		},
		Against: []string{
			"The device has few queue pairs, or few are used.",
			"Requests are late by more than fetching a context takes.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "more: no counter that is read here counts the misses. It is never more than possible.",
		Confirm:      "`rdma resource show` counts queue pairs and memory regions; `rdma statistic` or the vendor's diagnostic counters (icmc_miss) count misses on newer NICs.",
		Remedy:       "Use fewer queue pairs: share them between threads, use shared receive queues or dynamically connected transport, and larger pages.",
		Source:       []string{"https://www.usenix.org/conference/nsdi19/presentation/kalia"},
		Proven:       Recorded,
		Consequences: []string{"network_delay"},
		judge:        judgeContextCacheMisses,
	}
}

func judgeContextCacheMisses(b *Burst) Judgement {
	c := newNetworkCase(b)
	n := b.Neighbours
	if c.excluded() || n.QueuePairs < manyQueuePairs || n.Active < manyQueuePairs/4 {
		return c.not()
	}
	if len(c.delays) > 0 && median(c.delays) > 10*crossing {
		c.opposes(None, "delay", "requests were late by %s, more than fetching a context takes", short(median(c.delays)))
		return c.not()
	}
	c.supports("queue_pairs", "the device has %d queue pairs, of which %d were used", n.QueuePairs, n.Active)
	c.misses(Possible, "how often the NIC's cache missed")
	return c.is(Possible, 0)
}
