package tracer

import (
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// Completion sites do not see empty polls, and so not when a thread last looked
// in vain: without it the stages device and poll are one. Now and then a probe on
// the entry of poll_cq stands beside the sites, for a moment: two entries of a
// thread without a completion between them are a poll that came back empty. That
// costs half of what entry and return do, and completions go on being delivered
// at the sites, so that nothing is handed over.

const (
	// evidenceTime is how long the probe stands. Taking it off takes some tens
	// of milliseconds more, in which it costs and tells nothing.
	evidenceTime = 200 * time.Millisecond
	// evidenceEvery is the least time from one to the next, and evidencePart
	// the part of a thread's budget that it may take.
	evidenceEvery = 10 * time.Second
	evidencePart  = 0.25
	// drainEvery is for a queue that waits for proof that it drained.
	drainEvery = time.Second
)

// evidence decides when entries are probed beside sites. It touches no probe.
// every is the least time from one window to the next.
type evidence struct {
	open  bool
	since time.Time
	next  time.Time
	spent time.Duration
	every time.Duration
}

// begin is told that no entries are probed beside sites from now on.
func (e *evidence) begin(now time.Time) {
	*e = evidence{since: now, next: now.Add(e.every), every: e.every}
}

// turn says whether to probe entries, from now on. spent is what the busiest
// thread paid since the last call, ratio the bound on a thread's cost (0: none);
// wanted asks for it out of turn.
func (e *evidence) turn(now time.Time, spent time.Duration, ratio float64, wanted bool) (open bool) {
	if !e.open {
		due := !now.Before(e.next) || wanted && now.Sub(e.since) >= drainEvery
		if due {
			*e = evidence{open: true, since: now, next: e.next, every: e.every}
		}
		return due
	}
	e.spent += spent
	if now.Sub(e.since) < evidenceTime-turnSlack {
		return true
	}
	pause := e.every
	if ratio > 0 {
		pause = max(pause, time.Duration(float64(e.spent)/(ratio*evidencePart)))
	}
	*e = evidence{since: now, next: now.Add(pause), every: e.every}
	return false
}

// gatherEvidence opens and closes the probe on the entry of a poll_cq that is
// observed at its sites. The returns of posts are probed meanwhile, see turnPost.
func (t *Tracer) gatherEvidence(f *pollFunction, now time.Time, spent time.Duration, wanted bool) error {
	was := f.evidence.open
	open := f.evidence.turn(now, spent, t.cfg.MaxThreadCPURatio, wanted)
	switch {
	case open == was:
		return nil
	case open:
		return t.side.openLook(f, t.kind)
	default:
		return t.side.closeLook(f)
	}
}

func (k *kernelSide) openLook(f *pollFunction, kind linkKind) error {
	if err := k.beginAnew(f, bpf.TrackerPollFunction{Looks: 1}); err != nil {
		return err
	}
	look := point{provider.PollCQ, bpf.TrackerProgLookPollCq, false}
	var err error
	f.look, err = k.attachPoint(f.executable, look, []uint64{f.target.EntryOffset}, uint64(f.library)|uint64(f.index)<<32, kind)
	return err
}

func (k *kernelSide) closeLook(f *pollFunction) error {
	f.closer.closeAll(&f.look)
	return k.beginAnew(f, bpf.TrackerPollFunction{})
}
