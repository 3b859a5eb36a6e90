package fabric

import (
	"cmp"
	"time"
)

// Reading is what a counter has come to.
type Reading struct {
	Device string
	// Port is 0 for a counter of the whole device.
	Port    int
	Counter *Counter
	// Name is the kernel's name, with the number of the priority or lane in it.
	Name string
	// Priority is nil unless the counter is that of one.
	Priority *int
	// Count is what it grew by since Since, when it was read first; for a
	// momentary value it is the value. It is not scaled.
	Count uint64
	Since time.Time
	// Incomplete is true when the counter may not have counted all: it stands at its
	// highest value, or an interface of a bond did not answer. That it did not grow
	// says nothing then.
	Incomplete bool
}

// Int is the value in the unit of the metric, for one that has no fractions.
func (r Reading) Int() int64 { return int64(r.Count) * int64(r.Counter.scale()) }

// Float is the value in the unit of the metric.
func (r Reading) Float() float64 { return float64(r.Count) * r.Counter.scale() }

// series is what readings of several interfaces are added up under, and of which
// one source is enough.
type series struct {
	device    string
	port      int
	metric    string
	direction string
	name      string
}

// seriesOf leaves out the name where the metric is not told apart by it.
func seriesOf(r Reading) series {
	s := series{device: r.Device, port: r.Port, metric: r.Counter.Metric, direction: r.Counter.Direction, name: r.Name}
	if s.metric == MetricPortIO || s.metric == MetricPortPackets {
		s.name = ""
	}
	return s
}

func (s series) compare(other series) int {
	return cmp.Or(
		cmp.Compare(s.device, other.device),
		cmp.Compare(s.port, other.port),
		cmp.Compare(s.metric, other.metric),
		cmp.Compare(s.direction, other.direction),
		cmp.Compare(s.name, other.name),
	)
}
