package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// pause is what one kind of pause frames did in one direction.
type pause struct {
	// framesName and timeName are the counters.
	framesName, timeName string
	frames               float64
	time                 time.Duration
	// known is true when the frames were counted, timed when the time was.
	known, timed bool
}

func newPause(c *Counters, framesName, timeName string) pause {
	p := pause{framesName: framesName, timeName: timeName}
	p.frames, p.known = c.Grew(fabric.SourceEthtool, framesName)
	seconds, timed := c.Most(fabric.SourceEthtool, timeName)
	p.time, p.timed = time.Duration(seconds*float64(time.Second)), timed
	return p
}

func pfcPause(c *Counters, direction string) pause {
	return newPause(c, direction+"_prio[p]_pause", direction+"_prio[p]_pause_duration")
}

func globalPause(c *Counters, direction string) pause {
	return newPause(c, direction+"_global_pause", direction+"_global_pause_duration")
}

// weighPause notes how the pauses compare with the time that was lost, and returns
// how sure it is that they are it, None when there were none.
func (c *networkCase) weighPause(p pause, did string) (Confidence, float64) {
	switch {
	case !p.known:
		c.misses(None, missingPauses)
		return None, 0
	case p.frames == 0:
		c.opposes(None, p.framesName, "no pause frame was %s", did)
		return None, 0
	}
	c.supports(p.framesName, "%s %s", amount(p.frames, "pause frame"), did)
	if !p.timed {
		c.misses(Possible, "for how long they paused ("+p.timeName+")")
		return Possible, 0
	}
	confidence, explains := c.weighTime(p.time)
	text := "they paused for %s of %s; requests were slow for %s of it"
	if confidence >= Likely {
		c.supports(p.timeName, text, short(p.time), short(c.Counters.Span), short(c.union))
	} else {
		c.opposes(confidence, p.timeName, text, short(p.time), short(c.Counters.Span), short(c.union))
	}
	c.weighTogether()
	return confidence, explains
}

// ofPriority is how sure pauses of a priority can be that: how the host maps the traffic
// class of a queue pair to a priority is not read.
func (c *networkCase) ofPriority(confidence Confidence) Confidence {
	if confidence > None {
		c.misses(Likely, "whether the priority that was paused is that of the queue pair")
	}
	return confidence
}

// weighSent notes that pauses that this host sends stop what comes to it: the
// payload of reads. Of writes and sends it is only the acknowledgements.
func (c *networkCase) weighSent() {
	if share := c.incoming(); share >= 0.5 {
		c.supports("operation", "the payload of %s of the requests comes to this host", percent(share))
		return
	}
	c.opposes(Possible, "operation", "the payload of the requests leaves this host, which its own pauses do not stop")
}

// noteSlowHost adds signs that this host takes what comes too slowly.
func (c *networkCase) noteSlowHost() {
	for _, sign := range []struct{ name, text string }{
		{"rx_discards_phy", "%.0f packets were dropped for want of buffers in the NIC"},
		{"tx_pause_storm_warning_events", "%.0f times this host paused the network for long"},
		{"outbound_pci_stalled_wr_events", "in %.0f seconds the NIC waited long to write to memory"},
	} {
		if n, _ := c.Counters.Grew(fabric.SourceEthtool, sign.name); n > 0 {
			c.supports(sign.name, sign.text, n)
		}
	}
}
