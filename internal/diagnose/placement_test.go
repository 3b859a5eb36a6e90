package diagnose

import (
	"strings"
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// on puts the threads on these CPUs, each a NUMA node of its own, and the NIC on node 1.
func on(poller, poster uint32) func(*Burst) {
	return func(b *Burst) {
		nic := 1
		b.Device.NUMANode = &nic
		b.Device.Nodes = func(cpu uint32) (int, bool) { return int(cpu), cpu < 4 }
		for i := range b.Slow {
			b.Slow[i].Poller.CPU, b.Slow[i].Poster.CPU = poller, poster
		}
	}
}

// Whatever the cause is, threads that are far from the NIC are told of; where they are
// near for once, or it is not known, they are not.
func TestPlacementIsRemarkedOn(t *testing.T) {
	preempted := func() *Burst {
		return slowOnes(5, late(4*msec), while(verbs.Scheduling{Runnable: 4 * msec, Instead: hog}))
	}
	for name, test := range map[string]struct {
		burst *Burst
		want  string
	}{
		"both far":         {with(preempted(), on(0, 0)), "The poller and the poster ran on NUMA node 0 and the NIC is on node 1: bind the process to that of the NIC."},
		"the poller":       {with(preempted(), on(2, 1)), "The poller ran on NUMA node 2 and the NIC is on node 1: bind the process to that of the NIC."},
		"near":             {with(preempted(), on(1, 1)), ""},
		"near for once":    {with(preempted(), on(0, 0), func(b *Burst) { b.Slow[3].Poller.CPU, b.Slow[3].Poster.CPU = 1, 1 }), ""},
		"no such CPU":      {with(preempted(), on(7, 7)), ""},
		"the NIC has none": {with(preempted(), on(0, 0), func(b *Burst) { b.Device.NUMANode = nil }), ""},
		"no device":        {with(preempted(), func(b *Burst) { b.Device = nil }), ""},
		"nothing is slow":  {with(silence(peersTurn), func(b *Burst) { b.Device = preempted().Device }, on(0, 0)), ""},
		"no cause":         {with(slowOnes(5, unlooked(400*usec), unknownScheduling), on(0, 0)), "The poller and the poster ran on NUMA node 0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(test.burst, hostCauses()).Remedy
			if remarked := strings.Contains(got, "NUMA"); remarked != (test.want != "") || !strings.HasSuffix(got, test.want) && !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q at its end", got, test.want)
			}
		})
	}
}

// The cause that is about it needs no remark.
func TestMisplacementIsSaidOnce(t *testing.T) {
	got := Judge(with(slowOnes(5, unlooked(400*usec)), on(0, 0)), []Cause{{
		Name: numaMisplacement, Remedy: "Bind it.", judge: func(*Burst) Judgement { return Judgement{Confidence: Possible} },
	}})
	if got.Remedy != "Bind it." {
		t.Errorf("got %q", got.Remedy)
	}
}
