package diagnose

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Requests that overlap count once, and only within the window.
func TestUnderWay(t *testing.T) {
	b := &Burst{Start: 1000, End: 2000}
	of := func(posted, delivered uint64) *verbs.Completion {
		return &verbs.Completion{WorkRequest: verbs.WorkRequest{Posted: posted}, Delivered: delivered}
	}
	got := b.underWay([]*verbs.Completion{of(1500, 1600), of(900, 1100), of(1050, 1200), of(1060, 1100), of(2100, 2200)})
	if got != 300 {
		t.Errorf("under way for %d ns, want 300", got)
	}
	b.Stuck = []verbs.Stuck{{WorkRequest: verbs.WorkRequest{Posted: 500}}}
	if got := b.underWay(nil); got != 1000 {
		t.Errorf("stuck for %d ns, want all of the window", got)
	}
}

// A thread that finds nothing and sleeps until it is told was not late; of one of
// which it is not known whether it had looked, the sleep counts.
func TestSleepOfThePoller(t *testing.T) {
	asleep := func(r *verbs.Completion) { r.PollerScheduling.Asleep = r.Duration() * 95 / 100 }
	b := slow(10, 5*time.Millisecond)
	b.Counters = counted(mlx5(inHardware("packet_seq_err", 10)))
	each(b, asleep)
	if got := Judge(b, networkCauses()); got.Cause != "packet_loss" || got.Confidence != Certain {
		t.Errorf("it had looked: %+v", got)
	}
	unseen(b)
	if got := Judge(b, networkCauses()); got.Cause != Unknown {
		t.Errorf("it may not have looked: %+v", got)
	}
}

// Whatever is not known is nil: nothing is named for certain then, and nothing
// panics.
func TestLittleIsKnown(t *testing.T) {
	full := slow(3, 5*time.Millisecond)
	for name, b := range map[string]*Burst{
		"nothing":             {},
		"completions only":    {Start: full.Start, End: full.End, Slow: full.Slow},
		"bare completions":    {Slow: make([]verbs.Completion, 3)},
		"something stuck":     {Stuck: make([]verbs.Stuck, 1)},
		"a device without":    {Slow: full.Slow, Device: &Device{}},
		"counters of nothing": {Slow: full.Slow, Counters: &Counters{}},
	} {
		if got := Judge(b, networkCauses()); got.Confidence > Possible {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Whatever the tracer saw of a process that cannot be trusted, it is judged: parts
// are parts, and what is only possible or more has something for it.
func TestWildBursts(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 7))
	for range 2000 {
		b := slow(1+random.IntN(5), time.Millisecond)
		b.Counters = counted(mlx5(inHardware("local_ack_timeout_err", random.Uint64N(9)), inHardware("rnr_nak_retry_err", random.Uint64()>>1),
			inEthtool("rx_prio[p]_pause", 9), inEthtool("outbound_pci_stalled_rd", random.Uint64N(200))))
		b.Neighbours = Neighbours{Active: random.IntN(9), Slow: random.IntN(9), SlowOfPeer: random.IntN(9)}
		each(b, func(r *verbs.Completion) {
			r.Posted, r.Delivered, r.Known = random.Uint64(), random.Uint64(), verbs.StageSet(random.Uint32())
			for stage := range r.Stages {
				r.Stages[stage] = time.Duration(random.Uint64())
			}
			r.Busy, r.Path.AckTimeout = time.Duration(random.Uint64()), time.Duration(random.Uint64())
			r.PollerScheduling.Runnable = time.Duration(random.Uint64())
		})
		for _, cause := range networkCauses() {
			got := cause.judge(b)
			if !(got.Explains >= 0 && got.Explains <= 1) || got.Confidence != None && len(got.For) == 0 {
				t.Fatalf("%s: %+v\nof %+v", cause.Name, got, b)
			}
		}
	}
}
