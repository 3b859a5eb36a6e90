package rdmareceiver

import (
	"maps"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// settledIntervals is how many intervals something must be missing before it
// counts. The counters of a port and those of the tracer are not read at the same
// moment, so that one of them is ahead by up to an interval.
const settledIntervals = 3

// unattributed finds what ports sent that no traced request explains.
type unattributed struct {
	devices map[string]*portBalance
}

// portBalance is what a device sent against what was traced on it.
type portBalance struct {
	// since is from when the port's counter counts, started when the balance
	// was opened.
	since, started time.Time
	sent, traced   int64
	// open is how much more was sent than traced; less than nothing while the
	// tracer is ahead.
	open []int64
	// settled is what was open for as long as it takes to count. It does not go
	// down.
	settled int64
}

// unexplained are the bytes of one device.
type unexplained struct {
	device  string
	bytes   int64
	started time.Time
}

// update takes the counters of ports at a moment, and the bytes that each device
// transmitted as far as traced. Devices without a counter of bytes have none.
func (u *unattributed) update(sample *fabric.Sample, traced map[string]uint64) []unexplained {
	balances := map[string]*portBalance{}
	var all []unexplained
	sent := transmitted(sample.Readings)
	for _, device := range slices.Sorted(maps.Keys(sent)) {
		port := sent[device]
		b := u.devices[device]
		if b == nil || !b.since.Equal(port.since) {
			b = &portBalance{since: port.since, started: sample.At, sent: port.bytes, traced: int64(traced[device])}
		}
		b.add(port.bytes, int64(traced[device]))
		balances[device] = b
		all = append(all, unexplained{device: device, bytes: b.settled, started: b.started})
	}
	u.devices = balances
	return all
}

func (b *portBalance) add(sent, traced int64) {
	more := traced - b.traced
	open := sent - b.sent - more
	if n := len(b.open); n > 0 {
		open += b.open[n-1]
	}
	b.sent, b.traced = sent, traced
	// What was traced and did not come to the port within an interval never
	// will: it stayed within the NIC.
	b.open = append(b.open, max(open, -more))
	if len(b.open) > settledIntervals {
		b.open = slices.Delete(b.open, 0, 1)
	}
	if len(b.open) == settledIntervals {
		b.settled = max(b.settled, slices.Min(b.open))
	}
}

// sentBytes are what the ports of a device sent.
type sentBytes struct {
	bytes int64
	since time.Time
}

func transmitted(readings []fabric.Reading) map[string]sentBytes {
	sent := map[string]sentBytes{}
	for _, r := range readings {
		if r.Counter.Metric != fabric.MetricPortIO || r.Counter.Direction != fabric.DirectionTransmit {
			continue
		}
		device := sent[r.Device]
		device.bytes += r.Int()
		if r.Since.After(device.since) {
			device.since = r.Since
		}
		sent[r.Device] = device
	}
	return sent
}
