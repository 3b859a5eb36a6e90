package diagnose

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// A dice throws values that are often 0, often ordinary and sometimes absurd.
type dice struct{ *rand.Rand }

func (d dice) time() time.Duration {
	switch d.IntN(10) {
	case 0, 1, 2:
		return 0
	case 3:
		return time.Duration(d.Uint64())
	default:
		return time.Duration(d.Int64N(int64(10 * time.Millisecond)))
	}
}

func (d dice) count() uint64 {
	if d.IntN(10) == 0 {
		return math.MaxUint64
	}
	return d.Uint64N(5)
}

func (d dice) yes() bool { return d.IntN(2) == 0 }

func (d dice) scheduling() verbs.Scheduling {
	return verbs.Scheduling{
		Runnable: d.time(), Asleep: d.time(), Stopped: d.time(), Interrupted: d.time(), Longest: d.time(),
		Instead: verbs.Thread{TID: uint32(d.IntN(2)), Name: "\x1b[31m"}, Whole: d.yes(), InterruptsKnown: d.yes(),
	}
}

func (d dice) completion() verbs.Completion {
	c := verbs.Completion{
		Requests: uint32(d.count()), Status: verbs.Status(d.IntN(4) / 3 * 5), Poller: verbs.Thread{TID: uint32(d.IntN(2))},
		Known: verbs.StageSet(d.Uint32()), Busy: d.time(), Threshold: d.time(),
		PosterScheduling: d.scheduling(), PollerScheduling: d.scheduling(),
		HasPosterScheduling: d.yes(), HasPollerScheduling: d.IntN(4) > 0,
	}
	c.Outstanding, c.Posted = uint32(d.count()), d.count()
	c.Poster.TID = uint32(d.IntN(2))
	c.Delivered = c.Posted
	for i := range c.Stages {
		if c.Known.Has(verbs.Stage(i)) {
			c.Stages[i] = d.time()
			c.Delivered += uint64(c.Stages[i])
		}
	}
	return c
}

func (d dice) burst() *Burst {
	b := &Burst{Stamped: d.yes(), Rejected: d.count(), Registrations: Registrations{Count: d.count(), Time: d.time()}}
	for range d.IntN(6) {
		b.Slow = append(b.Slow, d.completion())
	}
	for range d.IntN(2) {
		b.Stuck = append(b.Stuck, verbs.Stuck{Age: d.time()})
	}
	if len(b.Slow)+len(b.Stuck) == 0 {
		b.Idle = &Idle{
			Since: d.count(), For: d.time(), LastDelivery: d.count(), LastReceive: d.count(), SendsOutstanding: d.count(),
			ReceivesOutstanding: d.count(), HasReceives: d.yes(), Ordered: d.yes(), Sends: d.count(), Receives: d.count(),
		}
	}
	b.Neighbours = Neighbours{
		Active: d.IntN(4), Slow: d.IntN(4), ActiveOfPeer: d.IntN(3), SlowOfPeer: d.IntN(3), ActiveOfCQ: d.IntN(3),
		SlowOfCQ: d.IntN(3), ActiveOfThread: d.IntN(3), SlowOfThread: d.IntN(3), QueuePairs: d.IntN(9), ThreadsKnown: d.yes(),
	}
	if d.yes() {
		b.Queue, b.Throttling = &verbs.QueueInfo{Limit: uint32(d.count())}, &Throttling{Count: d.count(), Time: d.time()}
	}
	if d.yes() {
		stolen := d.time()
		b.Stolen, b.CPUIdle = &stolen, &CPUIdle{Latency: d.time(), Entered: d.count()}
	}
	if d.yes() {
		b.Device = &Device{DeviceState: fabric.DeviceState{Device: fabric.Device{PCIAddress: "0000:18:00.0"}}}
		b.Poller = &Poller{State: "RSDTt\x00"[d.IntN(6)], Wait: Wait(d.IntN(3)), Scheduling: d.scheduling(), HasScheduling: d.yes()}
	}
	return b
}

// Whatever is measured, no cause is certain without evidence, none accounts for more
// than all of the time, and the same burst is judged the same again.
func TestRandomBursts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	d := dice{rand.New(rand.NewPCG(seed, 0))}
	certain := 0
	for range 5000 {
		b := d.burst()
		for _, cause := range hostCauses() {
			j := cause.judge(b)
			if j.Confidence > None && len(j.For) == 0 {
				t.Fatalf("seed %d: %s is %s without evidence: %+v", seed, cause.Name, j.Confidence, b)
			}
			if !(j.Explains >= 0 && j.Explains <= 1) {
				t.Fatalf("seed %d: %s explains %f: %+v", seed, cause.Name, j.Explains, b)
			}
			if j.Confidence == Certain {
				certain++
				if j.Explains < most {
					t.Fatalf("seed %d: %s is certain and explains %f: %+v", seed, cause.Name, j.Explains, b)
				}
			}
		}
		if one, other := Judge(b, Causes()), Judge(b, Causes()); one.Cause != other.Cause || one.Confidence != other.Confidence {
			t.Fatalf("seed %d: judged %+v, then %+v", seed, one, other)
		}
	}
	if certain == 0 {
		t.Errorf("seed %d: nothing was certain: the bursts are no test", seed)
	}
}

// Where nothing is known but that requests were slow, nothing is called, and it is
// said what would tell.
func TestEmptySurroundings(t *testing.T) {
	for name, of := range map[string]stages{
		"at completion sites":  unlooked(5 * msec),
		"poll known":           late(5 * msec),
		"where polls are seen": lookedAt(usec, 0, 5*msec, usec),
		"windows":              lookedAt(usec, 0, usec, 5*msec),
	} {
		t.Run(name, func(t *testing.T) {
			b := &Burst{Slow: slowOnes(3, of, unknownScheduling).Slow}
			for i := range b.Slow {
				b.Slow[i].Poster, b.Slow[i].Poller = verbs.Thread{}, verbs.Thread{}
			}
			got := Judge(b, hostCauses())
			if got.Cause != Unknown || len(got.Missing) == 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A cause must not keep or change the burst.
func TestBurstIsLeftAlone(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(1, 2))}
	for range 200 {
		b := d.burst()
		var before []uint64
		for i := range b.Slow {
			before = append(before, b.Slow[i].Posted)
		}
		Judge(b, hostCauses())
		for i := range b.Slow {
			if b.Slow[i].Posted != before[i] {
				t.Fatalf("the order of the requests changed")
			}
		}
	}
}
