package diagnose

import (
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// Device is the device of a burst, its port, and where it is in the machine.
type Device struct {
	fabric.DeviceState
	// Port is the port that was used, nil when it is not known which.
	Port *fabric.Port
	// GPU is the relation to the GPU whose memory the requests were in, "" when
	// they were in none or it is not known.
	GPU fabric.Relation
	// Nodes tells of a CPU which NUMA node it is on.
	Nodes func(cpu uint32) (node int, ok bool)
}

// Counters are what counters of a device and its ports grew by.
type Counters struct {
	// Span is the time over which they grew. It covers the window.
	Span time.Duration
	// Sent is how many bytes each active port of the device sent, by the port's
	// number; empty where that is not counted.
	Sent map[int]float64
	grew map[counterKey]float64
	// most is what the one grew by that grew most, of several of a name.
	most map[counterKey]float64
}

type counterKey struct {
	source fabric.CounterSource
	name   string
}

// NewCounters takes the difference of two samples for a device and one of its
// ports, 0 for all. It is nil when the device is not in both, or was replaced in
// between.
func NewCounters(before, after *fabric.Sample, device string, port int) *Counters {
	if before == nil || after == nil || !after.At.After(before.At) {
		return nil
	}
	earlier := earlierOf(before, device)
	c := &Counters{Span: after.At.Sub(before.At), Sent: map[int]float64{}, grew: map[counterKey]float64{}, most: map[counterKey]float64{}}
	for _, r := range after.Readings {
		if r.Device != device {
			continue
		}
		delta, ok := earlier.growth(r)
		if !ok {
			continue
		}
		if r.Port != 0 && r.Counter.Metric == fabric.MetricPortIO && r.Counter.Direction == fabric.DirectionTransmit {
			c.Sent[r.Port] += delta
		}
		if port == 0 || r.Port == 0 || r.Port == port {
			key := counterKey{r.Counter.Source, r.Counter.Name}
			c.grew[key] += delta
			c.most[key] = max(c.most[key], delta)
		}
	}
	if len(c.grew) == 0 {
		return nil
	}
	return c
}

// earlier is what was read of a device at the earlier moment.
type earlier struct {
	at       time.Time
	readings map[readingKey]fabric.Reading
	// whole has the ports and sources of which everything was read.
	whole map[sourceKey]bool
}

type readingKey struct {
	sourceKey
	name string
}

type sourceKey struct {
	source fabric.CounterSource
	port   int
}

func keyOf(r fabric.Reading) readingKey {
	return readingKey{sourceKey{r.Counter.Source, r.Port}, r.Name}
}

func earlierOf(sample *fabric.Sample, device string) *earlier {
	e := &earlier{at: sample.At, readings: map[readingKey]fabric.Reading{}, whole: map[sourceKey]bool{}}
	for _, r := range sample.Readings {
		if r.Device != device {
			continue
		}
		key := keyOf(r)
		e.readings[key] = r
		if !repeated(r.Counter.Name) {
			whole, seen := e.whole[key.sourceKey]
			e.whole[key.sourceKey] = (whole || !seen) && !r.Incomplete
		}
	}
	return e
}

// repeated reports whether a counter is one for each priority or lane.
func repeated(name string) bool { return strings.Contains(name, "[") }

// growth is false for a counter that was not read at the earlier moment, that began
// anew, or that may have missed all there was. One of a priority or a lane is not among
// the readings for as long as it is zero: it was, where the others of its source are.
func (e *earlier) growth(after fabric.Reading) (float64, bool) {
	if after.Counter.Momentary {
		return after.Float(), true
	}
	key := keyOf(after)
	before, ok := e.readings[key]
	if !ok && repeated(after.Counter.Name) && e.whole[key.sourceKey] && !after.Since.After(e.at) {
		return after.Float(), true
	}
	if !ok || before.Incomplete || !before.Since.Equal(after.Since) || after.Count < before.Count {
		return 0, false
	}
	if after.Incomplete && after.Count == before.Count {
		return 0, false
	}
	return after.Float() - before.Float(), true
}

// Grew is what a counter grew by, in the unit of its metric; of a momentary one it
// is the value. The name is that of [fabric.Counter], with [p] for a priority, and
// then it is the sum. It is false when the counter was not read: that it stayed as
// it was says something, that it was not looked at says nothing.
func (c *Counters) Grew(source fabric.CounterSource, name string) (float64, bool) {
	if c == nil {
		return 0, false
	}
	n, ok := c.grew[counterKey{source, name}]
	if !ok && repeated(name) {
		return 0, c.readsPriorities(source)
	}
	return n, ok
}

// Most is [Counters.Grew] of the one priority, lane or port that grew most: times in
// which several were stopped at once do not add up.
func (c *Counters) Most(source fabric.CounterSource, name string) (float64, bool) {
	_, ok := c.Grew(source, name)
	if !ok {
		return 0, false
	}
	return c.most[counterKey{source, name}], true
}

// readsPriorities reports whether the counters of priorities and lanes were read:
// those that are zero are not among the readings, but where mlx5 has these, it has
// the one of the whole port.
func (c *Counters) readsPriorities(source fabric.CounterSource) bool {
	_, ok := c.grew[counterKey{source, "rx_discards_phy"}]
	return ok
}

// GrewAny is the sum of those counters that were read, false when none was.
func (c *Counters) GrewAny(source fabric.CounterSource, names ...string) (sum float64, ok bool) {
	for _, name := range names {
		n, read := c.Grew(source, name)
		sum, ok = sum+n, ok || read
	}
	return sum, ok
}
