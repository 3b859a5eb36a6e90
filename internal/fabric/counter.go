package fabric

import (
	"strconv"
	"strings"
)

// CounterSource is where the kernel keeps a counter.
type CounterSource string

// The sources of counters.
const (
	// SourcePort is ports/N/counters of a device: what the InfiniBand
	// Architecture Specification lays down for every port. Those of 32 bits and
	// less stay at their highest value when they reach it, and do not wrap.
	SourcePort CounterSource = "counters"
	// SourceHardware is hw_counters of a port or a device: the driver's own.
	SourceHardware CounterSource = "hw_counters"
	// SourceEthtool is `ethtool -S` of the network interface.
	SourceEthtool CounterSource = "ethtool"
	// SourceAER is Advanced Error Reporting of the PCI function.
	SourceAER CounterSource = "aer"
)

// The metrics that counters become.
const (
	MetricPortIO            = "rdma.port.io"
	MetricPortPackets       = "rdma.port.packets"
	MetricPortDiscards      = "rdma.port.discards"
	MetricPortErrors        = "rdma.port.errors"
	MetricPortCorrectedBits = "rdma.port.corrected_bits"
	MetricPortLinkDowns     = "rdma.port.link_downs"
	MetricPortTransmitWait  = "rdma.port.transmit_wait"
	MetricPortPauseFrames   = "rdma.port.pause.frames"
	MetricPortPauseTime     = "rdma.port.pause.time"
	MetricPortPauseStorms   = "rdma.port.pause.storms"
	MetricPortCongestion    = "rdma.port.congestion.packets"
	MetricPortTransport     = "rdma.port.transport.events"
	MetricPortRequestErrors = "rdma.port.request.errors"
	MetricPortRequests      = "rdma.port.requests"
	MetricPCIeErrors        = "rdma.device.pcie.errors"
	MetricPCIeStalled       = "rdma.device.pcie.stalled"
	MetricPCIeStallTime     = "rdma.device.pcie.stall.time"
)

// The directions of a counter, seen from this host.
const (
	DirectionTransmit = "transmit"
	DirectionReceive  = "receive"
)

// Counter is what is known of one counter of the kernel.
type Counter struct {
	Source CounterSource
	// Name is the kernel's name. [p] in it stands for a priority from 0 to 7,
	// [l] for a lane.
	Name string
	// Metric is what it is exported as, Unit the metric's unit.
	Metric, Unit string
	// Scale is what one count is worth in that unit, 0 for 1.
	Scale float64
	// Direction is DirectionTransmit, DirectionReceive or "".
	Direction string
	// Wraps is how many bits it has, when it starts again from zero after them;
	// 0 for one that does not in the life of a machine.
	Wraps int
	// Stays is how many bits it has, when it stays at its highest value once it has
	// reached it; 0 for one that does not.
	Stays int
	// Momentary is true for a value that goes up and down.
	Momentary bool
	// Meaning says what it counts.
	Meaning string
}

// OfDevice reports whether the counter belongs to the device rather than to one
// of its ports.
func (c *Counter) OfDevice() bool {
	return strings.HasPrefix(c.Metric, "rdma.device.")
}

// full reports whether the counter stands at its highest value and stays there.
func (c *Counter) full(raw uint64) bool { return c.Stays > 0 && raw == 1<<c.Stays-1 }

// repeated reports whether there is one counter for each priority or lane.
func (c *Counter) repeated() bool { return strings.Contains(c.Name, "[") }

func (c *Counter) scale() float64 {
	if c.Scale == 0 {
		return 1
	}
	return c.Scale
}

// match is a counter found by the name of a file or a statistic.
type match struct {
	*Counter
	// name is the name with the number in it.
	name string
	// priority is nil unless the counter is that of one.
	priority *int
}

// catalogue finds counters by their names.
type catalogue map[CounterSource]map[string]*Counter

func newCatalogue() catalogue {
	all := catalogue{}
	for _, counter := range Counters() {
		if all[counter.Source] == nil {
			all[counter.Source] = map[string]*Counter{}
		}
		all[counter.Source][counter.Name] = &counter
	}
	return all
}

// find is false for a counter that is not known, which is left alone.
func (c catalogue) find(source CounterSource, name string) (match, bool) {
	if counter, ok := c[source][name]; ok && !counter.repeated() {
		return match{Counter: counter, name: name}, true
	}
	before, number, after, ok := splitNumber(name)
	if !ok {
		return match{}, false
	}
	if counter, ok := c[source][before+"[p]"+after]; ok && number < 8 {
		return match{Counter: counter, name: name, priority: &number}, true
	}
	if counter, ok := c[source][before+"[l]"+after]; ok {
		return match{Counter: counter, name: name}, true
	}
	return match{}, false
}

// splitNumber cuts a name at the only digit in it.
func splitNumber(name string) (before string, number int, after string, ok bool) {
	at := strings.IndexAny(name, "0123456789")
	if at < 0 || strings.ContainsAny(name[at+1:], "0123456789") {
		return "", 0, "", false
	}
	number, err := strconv.Atoi(name[at : at+1])
	return name[:at], number, name[at+1:], err == nil
}
