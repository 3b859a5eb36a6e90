package diagnose

import "time"

// networkCase gathers what speaks for a cause outside of this host's threads. Until it
// is judged, its confidence is the highest that is left: what is not known, and what
// speaks against it, lowers that.
type networkCase struct {
	opinion
	*Burst
	waits
	host hostTime
}

// newNetworkCase begins with what all such causes have in common: time that this
// host's threads lost was not lost outside.
func newNetworkCase(b *Burst) *networkCase {
	c := &networkCase{opinion: opinion{Judgement{Confidence: Certain}}, Burst: b, waits: newWaits(b)}
	c.host = c.hostTime(b.wait() == WaitEvent)
	switch {
	case b.Idle != nil || len(c.requests) == 0 && len(b.Stuck) == 0:
		c.Confidence = None
	case len(c.requests) == 0:
		c.limit(Likely)
	default:
		c.weighHost()
	}
	return c
}

func (c *networkCase) weighHost() {
	var busy, all time.Duration
	for _, r := range c.requests {
		busy, all = busy+r.Busy, all+r.Duration()
	}
	if share := ratio(busy, all); share > 0.8 {
		c.opposes(None, "port.busy", "the port needed %s of the time for what it carried", percent(share))
		return
	}
	if c.host.scheduled {
		c.weighAbsence()
	}
	if c.host.known {
		c.weighStages()
	}
	if l := c.runLateness(); l.Explains() > hardly {
		c.opposes(Likely, "wr.count", "%s of the excess time is of requests that complete with long runs of fast ones", percent(l.Explains()))
	}
	switch {
	case c.host.looked():
	case c.host.scheduled || c.host.lookedAtSome() || c.polledOthers():
		c.misses(Likely, "when the poller last looked and found nothing, of all requests")
	default:
		c.misses(Possible, "whether the poller was on a CPU")
	}
}

func (c *networkCase) weighStages() {
	h := c.host
	switch {
	case h.late >= mostly:
		c.opposes(None, "stage.poll", "in %s of the time the host itself was late", percent(h.late))
	case h.foundLate():
		c.opposes(Possible, "stage.poll", "of %d requests whose polls were watched, the host itself was late in %s of the time", h.watched, percent(h.watchedLate))
	case h.late > hardly:
		c.opposes(Possible, "stage.poll", "in %s of the time the host itself was late", percent(h.late))
	case h.looked():
		c.supports("stage.device", "%s of the time that was not spent behind earlier work, polls found nothing", percent(h.outside))
	case h.waited():
		c.supports("poller.awaits", "for %s of the time that was not spent behind earlier work, the poller slept until something happened, or polls found nothing", percent(h.told+h.outside))
	case h.lookedAtSome():
		c.supports("stage.device", "of %d requests of which it is known, polls found nothing for %s of the time", h.seen, percent(h.seenOutside))
	}
}

// polledOthers reports whether other queue pairs on the same Completion Queue were
// not slow, so that the poller did look.
func (c *networkCase) polledOthers() bool {
	n := c.Neighbours
	return n.ActiveOfCQ > 0 && float64(n.SlowOfCQ) <= hardly*float64(n.ActiveOfCQ)
}

func (c *networkCase) weighAbsence() {
	absent := c.host.absent
	switch {
	case absent <= hardly:
		c.supports("poller.on_cpu", "the poller was on a CPU")
	case absent < 0.5 || c.host.looked():
		c.opposes(Likely, "poller.absent", "the poller was off its CPU for %s of it", percent(absent))
	case absent < 0.8:
		c.opposes(Possible, "poller.absent", "the poller was off its CPU for %s of it", percent(absent))
	default:
		c.opposes(None, "poller.absent", "the poller was off its CPU for %s of it", percent(absent))
	}
}

// excluded reports whether it cannot be the cause whatever else is found.
func (c *networkCase) excluded() bool { return c.Confidence == None }

// not is the judgement that it is not this.
func (c *networkCase) not() Judgement {
	c.Confidence, c.Explains = None, 0
	return c.Judgement
}

// is is the judgement with that confidence, as far as the rest allows it: none where
// nothing speaks for it. Of what was slow without a head it is not known why.
func (c *networkCase) is(confidence Confidence, explains float64) Judgement {
	if len(c.For) == 0 {
		return c.not()
	}
	if c.inherited < most {
		c.limit(Likely)
	}
	c.Confidence, c.Explains = min(confidence, c.Confidence), c.inherited*min(max(explains, 0), 1)
	if c.Confidence == None {
		c.Explains = 0
	}
	return c.Judgement
}
