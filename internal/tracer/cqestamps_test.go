package tracer

import (
	"log/slog"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestSplitAt(t *testing.T) {
	const posted, delivered = 1_000_000, 1_500_000
	stages := func(known ...verbs.Stage) (s verbs.StageSet) {
		for _, stage := range known {
			s |= 1 << stage
		}
		return s
	}
	submitted := verbs.Completion{
		WorkRequest: verbs.WorkRequest{Posted: posted},
		Delivered:   delivered, Known: stages(verbs.StageSubmit, verbs.StageCompletion),
		Stages: [verbs.NumStages]time.Duration{verbs.StageSubmit: 100_000, verbs.StageCompletion: 400_000},
	}
	returned := submitted
	returned.Known = stages(verbs.StagePost, verbs.StageQueue, verbs.StageCompletion)
	returned.Stages = [verbs.NumStages]time.Duration{verbs.StagePost: 60_000, verbs.StageQueue: 40_000, verbs.StageCompletion: 400_000}
	told := submitted
	told.Known = stages(verbs.StageSubmit, verbs.StageCompletion, verbs.StagePoll)
	told.Stages[verbs.StageCompletion], told.Stages[verbs.StagePoll] = 300_000, 100_000
	tests := map[string]struct {
		completion    verbs.Completion
		written       int64
		last          verbs.Stage
		device, waits time.Duration
		known         verbs.StageSet
	}{
		"a late poller":       {submitted, delivered - 390_000, verbs.StageCompletion, 10_000, 390_000, told.Known},
		"a slow device":       {submitted, delivered - 700, verbs.StageCompletion, 399_300, 700, told.Known},
		"a little too late":   {submitted, delivered + 900, verbs.StageCompletion, 400_000, 0, told.Known},
		"not yet the oldest":  {submitted, posted + 50_000, verbs.StageCompletion, 0, 400_000, told.Known},
		"before the post":     {submitted, posted - 1, verbs.StageCompletion, 400_000, 0, submitted.Known},
		"the return is known": {returned, delivered - 390_000, verbs.StageDevice, 10_000, 390_000, stages(verbs.StagePost, verbs.StageQueue, verbs.StageDevice, verbs.StagePoll)},
		"told already":        {told, delivered - 390_000, verbs.StageCompletion, 300_000, 100_000, told.Known},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := test.completion
			splitAt(&c, test.written)
			if c.Known != test.known || c.Stages[test.last] != test.device || c.Stages[verbs.StagePoll] != test.waits {
				t.Errorf("known %b, stages %v", c.Known, c.Stages)
			}
			sum := time.Duration(0)
			for stage, d := range c.Stages {
				sum += d
				if d != 0 && !c.Known.Has(verbs.Stage(stage)) {
					t.Errorf("%v is not known and %v", verbs.Stage(stage), d)
				}
			}
			if sum != c.Duration() {
				t.Errorf("stages add up to %v of %v", sum, c.Duration())
			}
		})
	}
}

// stampedRun samples two processes on one device for a time: one shows the clock
// of the device, the other one makes stamps up.
func stampedRun(s *cqeStamps, from, to time.Duration) {
	for at := from; at < to; at += 2 * time.Millisecond {
		s.add(&bpf.TrackerCqeSample{Tgid: 1, Device: 3, Stamp: 1000 + uint64(at), SeenNs: uint64(at) + 300})
		s.add(&bpf.TrackerCqeSample{Tgid: 2, Device: 3, Stamp: 1000 + uint64(at)*uint64(at)>>20, SeenNs: uint64(at) + 300})
	}
}

func stampedAt(tgid uint32, written, delivered time.Duration) (verbs.Completion, uint64) {
	c := verbs.Completion{
		WorkRequest: verbs.WorkRequest{
			Queue:  verbs.QueueID{Process: verbs.ProcessID{TGID: tgid}},
			Posted: uint64(written - 5*time.Microsecond),
		},
		Delivered: uint64(delivered),
		Known:     1<<verbs.StageSubmit | 1<<verbs.StageCompletion,
	}
	c.Stages[verbs.StageCompletion] = c.Duration()
	return c, 1000 + uint64(written)
}

func TestStampsSplitWhatIsProven(t *testing.T) {
	s := newCQEStamps(slog.New(slog.DiscardHandler))
	const late = 400 * time.Microsecond
	hold := func(tgid uint32, written time.Duration) {
		t.Helper()
		c, stamp := stampedAt(tgid, written, written+late)
		if !s.hold(c, 3, stamp) {
			t.Fatal("a completion with a stamp was not held")
		}
	}
	polls := func(now time.Duration, all bool) (found []time.Duration) {
		for _, c := range s.take(uint64(now), all) {
			found = append(found, c.Stages[verbs.StagePoll])
		}
		return found
	}
	hold(1, 2*time.Second)
	stampedRun(s, time.Second, 3*time.Second)
	if got := polls(2100*time.Millisecond, false); len(got) != 0 {
		t.Errorf("%v was not to be taken yet", got)
	}
	if got := polls(3*time.Second, false); len(got) != 1 || got[0] != 0 {
		t.Errorf("the clock was not proven yet, and %v", got)
	}
	stampedRun(s, 3*time.Second, 12*time.Second)
	hold(2, 11*time.Second)
	hold(1, 11*time.Second)
	got := polls(12*time.Second, false)
	if len(got) != 2 || got[0] != 0 || got[1] < late-time.Microsecond || got[1] > late {
		t.Errorf("of a made-up clock and a proven one: %v", got)
	}
	hold(1, 12*time.Second)
	if got := polls(12*time.Second+time.Millisecond, true); len(got) != 1 || got[0] != 0 {
		t.Errorf("nothing confirms the last stamp, and %v", got)
	}
	if c, stamp := stampedAt(1, time.Second, 2*time.Second); s.hold(c, 3, stamp) {
		t.Error("a completion was held after the end")
	}
}

func TestStampsAreBounded(t *testing.T) {
	s := newCQEStamps(slog.New(slog.DiscardHandler))
	for tgid := range uint32(2 * mostClocks) {
		s.add(&bpf.TrackerCqeSample{Tgid: tgid, Stamp: 1, SeenNs: 1})
	}
	s.add(&bpf.TrackerCqeSample{Device: noDevice, Stamp: 1, SeenNs: 1})
	if len(s.clocks) != mostClocks {
		t.Errorf("%d clocks", len(s.clocks))
	}
	held := 0
	for range 2 * mostWaiting {
		if c, stamp := stampedAt(1, time.Second, 2*time.Second); s.hold(c, 3, stamp) {
			held++
		}
	}
	if held != mostWaiting {
		t.Errorf("%d completions are held", held)
	}
	s.take(uint64(time.Hour), false)
	if len(s.clocks) != 0 || len(s.waiting) != 0 {
		t.Errorf("%d clocks and %d completions are left", len(s.clocks), len(s.waiting))
	}
}
