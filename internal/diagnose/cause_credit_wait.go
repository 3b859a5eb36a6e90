package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// bytesPerTick is what one lane could have sent in a tick of port_xmit_wait, of devices
// whose tick is 0x07 as in the example of the ibdiagnet User Manual: eight times the time
// of a byte. Links of several lanes send more, so that it says the least.
const bytesPerTick = 8

func creditWaitCause() Cause {
	return Cause{
		Name:    "credit_wait",
		Title:   "waiting for credits (InfiniBand)",
		Happens: "The next hop has no buffers free and gives no credits: the port has something to send and may not. It is what a pause is on Ethernet.",
		Needs:   "port_xmit_wait and port_xmit_data of an InfiniBand port, and its rate",
		For: []string{
			"The time that port_xmit_wait grew by is about as long as that for which requests were slow, or fills most of the window.",
			"The other queue pairs of the device are slow as well.",
		},
		Against: []string{
			"port_xmit_wait did not grow.",
			"The waits are too short; or so common that they fall on slow requests by chance.",
			"The port is not InfiniBand.",
			"The port sent nearly what it can.",
			"Most other queue pairs are not slow.",
			"The poller was off its CPU, or polls found completions late.",
		},
		CannotTell:   "how long it waited, as the length of a tick differs between devices: it is never certain. Nor which host at the other end of the congestion is slow.",
		Confirm:      "`perfquery -x LID PORT` shows PortXmitWait grow while PortXmitData does not; `ibdiagnet` finds the congested links.",
		Remedy:       "Follow port_xmit_wait through the switches to the port where it ends: the host behind that is the slow one, or routes collide there.",
		Source:       []string{"https://docs.nvidia.com/networking/display/ibdiagnetUserManualv213/Congestion+Assessment+on+InfiniBand+Links", "https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband"},
		Proven:       Recorded,
		Consequences: []string{"network_delay"},
		judge:        judgeCreditWait,
	}
}

func judgeCreditWait(b *Burst) Judgement {
	c := newNetworkCase(b)
	if c.excluded() || b.Device == nil || b.Device.Port == nil || b.Device.Port.LinkLayer != fabric.LinkLayerInfiniBand {
		return c.not()
	}
	ticks, read := b.Counters.Grew(fabric.SourcePort, "port_xmit_wait")
	sent, counted := b.Counters.Grew(fabric.SourcePort, "port_xmit_data")
	if !read || !counted {
		c.misses(None, missingCredits)
		return c.not()
	}
	if ticks == 0 {
		c.opposes(None, "port_xmit_wait", "the port never waited for credits")
		return c.not()
	}
	rate := b.Device.Port.RateBitsPerSecond / 8
	if rate <= 0 {
		c.supports("port_xmit_wait", "the port waited for credits for %.0f ticks", ticks)
		c.misses(Possible, "the rate of the port, by which ticks are a time")
		return c.is(Possible, 0)
	}
	if sent > 0.8*rate*b.Counters.Span.Seconds() {
		c.opposes(Possible, "port_xmit_data", "the port sent nearly what it can")
	}
	return c.weighCredits(ticks, rate)
}

// weighCredits compares the time that the port waited with that for which requests were
// slow. How long a tick is, is not known well enough to be certain.
func (c *networkCase) weighCredits(ticks, rate float64) Judgement {
	seconds := min(ticks*bytesPerTick/rate, c.Counters.Span.Seconds())
	counted := time.Duration(seconds * float64(time.Second))
	confidence, explains := c.weighTime(counted)
	text := "the port waited for credits for at least about %s of %s; requests were slow for %s of it"
	if confidence >= Likely {
		c.supports("port_xmit_wait", text, short(counted), short(c.Counters.Span), short(c.union))
	} else {
		c.supports("port_xmit_wait", "the port waited for credits for %.0f ticks", ticks)
		c.opposes(confidence, "port_xmit_wait", text, short(counted), short(c.Counters.Span), short(c.union))
	}
	c.weighTogether()
	return c.is(min(confidence, Likely), explains)
}
