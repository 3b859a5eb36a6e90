package diagnose

import (
	"fmt"
	"time"
)

// networkCase gathers what speaks for a cause outside of this host's threads. What
// is not known, and what speaks against it, lowers the highest confidence that the
// judgement may have.
type networkCase struct {
	Judgement
	*Burst
	waits
	host    hostTime
	ceiling Confidence
}

// newNetworkCase begins with what all such causes have in common: time that this
// host's threads lost was not lost outside.
func newNetworkCase(b *Burst) *networkCase {
	c := &networkCase{Burst: b, waits: newWaits(b), ceiling: Certain}
	c.host = c.hostTime(b.wait() == WaitEvent)
	switch {
	case b.Idle != nil || len(c.requests) == 0 && len(b.Stuck) == 0:
		c.ceiling = None
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
		c.opposes("port.busy", None, "the port needed %s of the time for what it carried", percent(share))
		return
	}
	if c.host.scheduled {
		c.weighAbsence()
	}
	if c.host.known {
		c.weighStages()
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
		c.opposes("stage.poll", None, "in %s of the time the host itself was late", percent(h.late))
	case h.foundLate():
		c.opposes("stage.poll", Possible, "of %d requests whose polls were watched, the host itself was late in %s of the time", h.watched, percent(h.watchedLate))
	case h.late > hardly:
		c.opposes("stage.poll", Possible, "in %s of the time the host itself was late", percent(h.late))
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
		c.opposes("poller.absent", Likely, "the poller was off its CPU for %s of it", percent(absent))
	case absent < 0.8:
		c.opposes("poller.absent", Possible, "the poller was off its CPU for %s of it", percent(absent))
	default:
		c.opposes("poller.absent", None, "the poller was off its CPU for %s of it", percent(absent))
	}
}

func (c *networkCase) supports(name, format string, arguments ...any) {
	c.For = append(c.For, Evidence{name, fmt.Sprintf(format, arguments...)})
}

// opposes notes what speaks against it, and that no more than highest is left.
func (c *networkCase) opposes(name string, highest Confidence, format string, arguments ...any) {
	c.Against = append(c.Against, Evidence{name, fmt.Sprintf(format, arguments...)})
	c.limit(highest)
}

// misses notes what is not known, and that no more than highest is left.
func (c *networkCase) misses(highest Confidence, what string) {
	c.Missing = append(c.Missing, what)
	c.limit(highest)
}

func (c *networkCase) limit(highest Confidence) { c.ceiling = min(c.ceiling, highest) }

// excluded reports whether it cannot be the cause whatever else is found.
func (c *networkCase) excluded() bool { return c.ceiling == None }

// not is the judgement that it is not this.
func (c *networkCase) not() Judgement {
	c.Confidence, c.Explains = None, 0
	return c.Judgement
}

// is is the judgement with that confidence, as far as the rest allows it: none
// where nothing speaks for it.
func (c *networkCase) is(confidence Confidence, explains float64) Judgement {
	if len(c.For) == 0 {
		return c.not()
	}
	c.Confidence, c.Explains = min(confidence, c.ceiling), min(max(explains, 0), 1)
	if c.Confidence == None {
		c.Explains = 0
	}
	return c.Judgement
}

// amount is a number with its noun, which takes an s where it is not one.
func amount(n float64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%.0f %ss", n, noun)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
