package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

func networkDelayCause() Cause {
	return Cause{
		Name:    "network_delay",
		Title:   "device, fabric or peer is slow",
		Happens: "The completion comes late although this host's threads wait for it, and no counter of the device says why: the path is long or congested further on, its rate is limited, or the peer's NIC is slow.",
		Needs:   "that the poller looked and found nothing, took what came from other queue pairs or slept until it was told, that nothing else kept it from its CPU, and the transport counters of the device",
		For: []string{
			"Most of the time that was not spent behind earlier work, polls found nothing; or other queue pairs on the same Completion Queue were polled and not slow; or the poller slept until it was told.",
			"The poller was on a CPU, or slept until it was told.",
			"No counter of the device or port that would explain it moved.",
			"The other queue pairs to the same peer are slow as well, those to others are not.",
		},
		Against: []string{
			"The poller was off its CPU, or polls found completions late.",
			"A counter moved that explains it: see the other causes.",
			"Requests were slow only behind earlier work of their queue, or complete with a long run of others.",
			"Other queue pairs to the same peer are not slow.",
			"Pauses of an Ethernet port, or credits of an InfiniBand one, were not counted.",
		},
		CannotTell:   "device, fabric and peer from one another: that takes the peer's view; of a poller that sleeps until it is told, a late completion from a late interrupt. It is never certain.",
		Confirm:      "Measure the same path with `ib_write_lat` on another queue pair, from here and from a neighbour, and look at the queues of the switches between.",
		Remedy:       "Compare with other peers: slow to one is that peer or the path to it, slow to all is this host's device or its first link.",
		Source:       []string{"https://github.com/NVIDIA/nccl/issues/1453", "https://github.com/NVIDIA/nccl/issues/1378"},
		Proven:       Executed,
		Consequences: []string{"send_queue_full", "send_queue_backlog"},
		judge:        judgeNetworkDelay,
	}
}

func judgeNetworkDelay(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() {
		return c.not()
	}
	unanswered, _ := c.failed(statusRetryExceeded)
	refused, _ := c.failed(statusRNRRetryExceeded)
	if len(c.requests) == 0 || unanswered+refused > 0 {
		c.opposes(None, "requests", "requests failed, or none came through")
		return c.not()
	}
	if !c.looks() {
		return lacking(missingLook)
	}
	c.limit(Likely)
	c.needOnCPU()
	c.weighTroubles()
	c.weighUnread()
	c.weighSpecific()
	c.weighHeads()
	c.weighRuns()
	c.weighPeer()
	if late := median(c.delays); c.Confidence > None && len(c.delays) > 0 && late <= crossing && c.misplaced() {
		c.opposes(Possible, "node", "requests were late by %s only, and a thread or the GPU is far from the NIC", short(late))
	}
	if c.Confidence < Likely {
		// It is what remains: anything that says more stands before it.
		return c.is(Possible, 0)
	}
	return c.is(Likely, 1-c.host.late)
}

// looks reports whether it was seen that the poller looked, at least for a part of
// the time that it had: a thread that is on a CPU and does something else looks the
// same otherwise.
func (c *networkCase) looks() bool {
	if c.host.looked() || c.host.lookedAtSome() {
		return true
	}
	if c.polledOthers() {
		c.supports("neighbours.cq", "%d other queue pairs on the same Completion Queue were polled and hardly slow", c.Neighbours.ActiveOfCQ)
		return true
	}
	if c.host.waited() {
		c.misses(Possible, "when the device wrote the completions that the poller slept for: cqe_timestamps tells")
		return true
	}
	c.limit(Possible)
	return !c.host.known || c.host.outside > hardly
}

// needOnCPU is stricter than what holds for causes that are counted.
func (c *networkCase) needOnCPU() {
	switch {
	case !c.host.scheduled:
		c.misses(Possible, "whether the poller was on a CPU")
	case c.host.absent > hardly:
		c.limit(Possible)
	}
}

// weighTroubles looks for a counter that says more. One that moved for fewer than a
// tenth of the requests did not make them slow.
func (c *networkCase) weighTroubles() {
	sentAgain := newRetransmissions(c.Counters)
	if !sentAgain.complete {
		c.misses(Possible, "the transport counters of the device")
		return
	}
	told := troubles()
	if c.longPath(sentAgain) {
		c.supports("ack_timeout", "the path takes longer than the timeout of %s, and requests are sent again in vain", short(c.path().AckTimeout))
	} else {
		told = append(told, retransmitted()...)
	}
	quiet := true
	for _, f := range told {
		if n, name, _ := f.grew(c.Counters); n > 0 && n >= c.count()/10 {
			c.opposes(Possible, name, "%s grew by %.0f", name, n)
			quiet = false
		}
	}
	if quiet {
		c.supports("counters", "no counter of the device says more")
	}
}

// weighUnread notes that the port may have been stopped, where that was not counted.
func (c *networkCase) weighUnread() {
	if c.Device == nil || c.Device.Port == nil || c.software() {
		return
	}
	switch c.Device.Port.LinkLayer {
	case fabric.LinkLayerEthernet:
		if !pfcPause(c.Counters, "rx").known {
			c.misses(Possible, missingPauses)
		}
	case fabric.LinkLayerInfiniBand:
		switch ticks, read := c.Counters.Grew(fabric.SourcePort, "port_xmit_wait"); {
		case !read:
			c.misses(Possible, missingCredits)
		case ticks > 0 && c.Device.Port.RateBitsPerSecond <= 0:
			c.opposes(Possible, "port_xmit_wait", "the port waited for credits for %.0f ticks, and its rate is not known", ticks)
		}
	}
}

// saysMore is the part of the time from which on a cause that is only possible is
// the better answer.
const saysMore = 0.2

// weighSpecific leaves it to a cause that says more.
func (c *networkCase) weighSpecific() {
	for _, cause := range specificNetworkCauses() {
		if j := cause.judge(c.Burst); j.Confidence >= Likely || j.Confidence == Possible && j.Explains > saysMore {
			c.opposes(Possible, cause.Name, "%s says more", cause.Name)
		}
	}
}

// weighHeads notes whether requests were late that had nothing before them: else it
// may be the queue that was too long.
func (c *networkCase) weighHeads() {
	all := make([]time.Duration, 0, len(c.requests))
	for _, r := range c.requests {
		all = append(all, c.delay(r))
	}
	if len(c.heads) == 0 || 2*median(c.delays) < median(all) {
		c.opposes(Possible, "stage.queue", "most of the time was spent behind earlier work of the same queue")
	}
}

// weighRuns notes that most of what was slow completes with a long run of requests:
// that takes as long as the run, on the fastest path.
func (c *networkCase) weighRuns() {
	if c.runLateness().grade() >= Likely {
		shortest, _ := c.runs()
		c.opposes(Possible, "wr.count", "runs of %d or more requests complete with one of them", shortest)
	}
}

func (c *networkCase) weighPeer() {
	n := c.Neighbours
	switch {
	case n.ActiveOfPeer == 0:
	case float64(n.SlowOfPeer) < hardly*float64(n.ActiveOfPeer):
		c.opposes(Possible, "neighbours.peer", "only %d of %d other queue pairs to the same peer were slow", n.SlowOfPeer, n.ActiveOfPeer)
	default:
		c.supports("neighbours.peer", "%d of %d other queue pairs to the same peer were slow as well", n.SlowOfPeer, n.ActiveOfPeer)
	}
}

// misplaced is noteMisplaced without the notes.
func (c *networkCase) misplaced() bool {
	aside := *c
	return aside.noteMisplaced()
}
