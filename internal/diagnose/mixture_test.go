package diagnose

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// mixed is a burst in which the network and the host each made requests slow, for about
// as long: those of the host follow those of the network, again and again. It is nil where
// that would take more of them than are judged.
func mixed(network, host *Burst) *Burst {
	if times := 1 + int(network.Excess()/host.Excess()); times*len(host.Slow) > 64 {
		return nil
	}
	b := *host
	b.Start, b.End = network.Start, network.End
	b.Counters, b.Events, b.Baseline = network.Counters, network.Events, network.Baseline
	b.Completions, b.HasCompletions = network.Completions, network.HasCompletions
	// What the device counted may be of others that were slow.
	b.Neighbours.Slow = max(b.Neighbours.Slow, network.Neighbours.Slow)
	b.Neighbours.SlowOfPeer = max(b.Neighbours.SlowOfPeer, network.Neighbours.SlowOfPeer)
	device := *network.Device
	device.PCIAddress = host.Device.PCIAddress
	b.Device = &device
	b.Slow = slices.Clone(network.Slow)
	for i := range b.Slow {
		b.Slow[i].Threshold, b.Slow[i].Poller = 50*time.Microsecond, poller
	}
	at := b.Slow[len(b.Slow)-1].Delivered
	throttling, registrations := Throttling{}, Registrations{}
	for lost := time.Duration(0); lost < network.Excess(); lost += host.Excess() {
		registrations.Count += host.Registrations.Count
		registrations.Time += host.Registrations.Time
		throttling.Count += host.Throttling.Count
		throttling.Time += host.Throttling.Time
		for _, c := range host.Slow {
			took := c.Duration()
			c.Operation, c.Bytes, c.Port, c.Path = verbs.OpSend, 64<<10, 1, network.Slow[0].Path
			c.Posted = at + 1000
			c.Delivered = c.Posted + uint64(took)
			at = c.Delivered
			b.Slow = append(b.Slow, c)
			b.Completions++
		}
	}
	b.End = max(b.End, at)
	b.Throttling, b.Registrations = &throttling, registrations
	return &b
}

// Where two causes are at work for as long, neither is certain, and no third is more
// than possible.
func TestMixturesAreNotCertain(t *testing.T) {
	tried := 0
	for network, some := range allTrials() {
		for _, trial := range some.brings {
			if trial.confidence < Likely || len(trial.make().Slow) == 0 {
				continue
			}
			for host, cases := range hostCases {
				for _, name := range slices.Sorted(maps.Keys(cases.is)) {
					c := cases.is[name]
					if c.want != host || c.sure < Likely || len(c.burst.Slow) == 0 || c.burst.Throttling == nil {
						continue
					}
					b := mixed(trial.make(), c.burst)
					if b == nil {
						continue
					}
					tried++
					got := Judge(b, Causes())
					third := got.Cause != network && got.Cause != host
					if got.Confidence == Certain || third && got.Confidence > Possible {
						t.Errorf("%s (%s) and %s (%s): %s, %s, explains %.2f, others %q\nfor %v\nagainst %v", network, trial.name, host, name, got.Cause, got.Confidence, got.Explains, got.Others, got.For, got.Against)
					}
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("tried %d mixtures only", tried)
	}
}
