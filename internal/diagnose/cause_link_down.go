package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func linkDownCause() Cause {
	return Cause{
		Name:    "link_down",
		Title:   "the link went down",
		Happens: "The port lost its link, for a moment or for good. What was under way is sent again when it is back, or fails.",
		Needs:   "the events of the device, or the link-down counters of the port",
		For: []string{
			"The device told that its port failed while the slow or stuck requests were under way.",
			"The port counted that its link went down.",
			"The port is not active now.",
		},
		Against: []string{
			"The port stayed active: no event, and no count.",
			"The requests were not under way while the port was down, or late by much longer.",
		},
		CannotTell:   "who took it down: an administrator, the switch, or a cable. A link further on that goes down is ack_timeout here.",
		Confirm:      "`dmesg | grep -i 'link'`, `ethtool -S INTERFACE | grep link_down_events_phy`, `ibstat`; the switch's log says why.",
		Remedy:       "Look at cable, transceiver and switch port; a queue pair whose timeout · retry_cnt is longer than the flap survives it.",
		Source:       []string{"https://github.com/NVIDIA/nccl/issues/1557", "https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html"},
		Proven:       Executed,
		Consequences: []string{"ack_timeout", "packet_loss", "adaptive_retransmission", "bad_cable", "hang", "network_delay"},
		judge:        judgeLinkDown,
	}
}

// judgeLinkDown does not look at the poller: a request that was under way while
// the link was down was late because of that.
func judgeLinkDown(b *Burst) Judgement {
	c := newNetworkCase(b)
	if b.Idle != nil || len(c.requests)+len(b.Stuck) == 0 {
		return c.not()
	}
	outages := c.outages()
	downs, name, counted := c.linkDowns()
	inactive := b.Device != nil && b.Device.Port != nil && b.Device.Port.State != "" && !b.Device.Port.Active()
	if len(outages) == 0 && downs == 0 && !inactive {
		if !counted {
			c.misses(None, "the link-down counters of the port")
		}
		return c.not()
	}
	if downs > 0 {
		c.supports(name, "the link went down %s", amount(downs, "time"))
	}
	if inactive {
		c.supports("port.state", "the port is %s", b.Device.Port.State)
	}
	if len(outages) > 0 {
		return c.judgeOutages(outages)
	}
	return c.judgeCountedDowns(inactive)
}

// judgeOutages is for a port whose outages were told with their times.
func (c *networkCase) judgeOutages(outages []outage) Judgement {
	share := c.shareWithin(outages)
	text := "requests that lost %s of the time were under way while the port was down"
	c.Confidence = Certain
	if share < 0.5 {
		c.opposes(Possible, "event.port_error", text, percent(share))
	} else {
		c.supports("event.port_error", text, percent(share))
	}
	if most := c.recovered(outages); median(c.delays) > most {
		c.opposes(Possible, "delay", "requests were late by %s, longer than it takes to go on after the outage", short(median(c.delays)))
	}
	return c.is(ofPart(share), share)
}

// recovered is how long after the longest outage began all should go on: a device
// sends again within four timeouts, and addresses may have to be resolved again.
func (c *networkCase) recovered(outages []outage) time.Duration {
	longest := time.Duration(0)
	for _, o := range outages {
		longest = max(longest, time.Duration(o.to-o.from))
	}
	return 2 * (longest + 4*c.path().AckTimeout + time.Second)
}

// judgeCountedDowns is for a port that is down, or whose link-down counters grew,
// without the time of it.
func (c *networkCase) judgeCountedDowns(inactive bool) Judgement {
	c.misses(Likely, "when the link went down")
	unanswered, _ := c.failed(statusRetryExceeded)
	waits := len(c.Stuck) > 0 || unanswered > 0
	if r := newRetransmissions(c.Counters); r.timeouts > 0 || inactive && waits {
		return c.is(Likely, 1)
	}
	// What came through came before the link went down, or after it.
	return c.is(Possible, 0)
}

func (c *networkCase) linkDowns() (n float64, name string, read bool) {
	for _, f := range linkDownCounters() {
		grew, of, ok := f.grew(c.Counters)
		read = read || ok
		if grew > n {
			n, name = grew, of
		}
	}
	return n, name, read
}

func linkDownCounters() []family {
	return []family{ethtool("link_down_events_phy"), hardware("link_downed"), {fabric.SourcePort, []string{"link_downed"}}}
}

// outage is when a port was down, in nanoseconds of CLOCK_MONOTONIC.
type outage struct{ from, to uint64 }

// outages are those of the port that were told, up to the end of the window where
// it has not come back.
func (c *networkCase) outages() []outage {
	var all []outage
	down := uint64(0)
	for _, e := range c.Events {
		if !c.ofPort(e) {
			continue
		}
		switch {
		case e.Type == verbs.AsyncPortError && down == 0:
			down = e.Monotonic
		case e.Type == verbs.AsyncPortActive && down != 0:
			all = append(all, outage{down, e.Monotonic})
			down = 0
		}
	}
	if down != 0 {
		all = append(all, outage{down, max(c.End, down)})
	}
	return all
}

func (c *networkCase) ofPort(e verbs.AsyncEvent) bool {
	if c.Device != nil && e.Device != c.Device.Name {
		return false
	}
	return e.Port == 0 || c.port() == 0 || e.Port == uint32(c.port())
}

func (c *networkCase) port() uint8 {
	switch {
	case len(c.requests) > 0:
		return c.requests[0].Port
	case len(c.Stuck) > 0:
		return c.Stuck[0].Port
	default:
		return 0
	}
}

// shareWithin is the part of the time that was lost by slow and stuck requests that were
// under way during one of the outages.
func (c *networkCase) shareWithin(outages []outage) float64 {
	within := func(from, to uint64) bool {
		for _, o := range outages {
			if from <= o.to && to >= o.from {
				return true
			}
		}
		return false
	}
	var of, all time.Duration
	count := func(from, to uint64, lost time.Duration) {
		all += lost
		if within(from, to) {
			of += lost
		}
	}
	for _, r := range c.requests {
		count(r.Posted, r.Delivered, r.Excess())
	}
	for i := range c.Stuck {
		count(c.Stuck[i].Posted, c.End, c.Stuck[i].Age)
	}
	return ratio(of, all)
}
