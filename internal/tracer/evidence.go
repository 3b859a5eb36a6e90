package tracer

import (
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// Completion sites do not see empty polls, and so not when a thread last looked
// in vain: without it the stages device and poll are one. Now and then, and when
// completions begin to be slow, a probe on the entry of poll_cq stands beside the
// sites, for a moment: two entries of a thread without a completion between them
// are a poll that came back empty. That costs half of what entry and return do,
// and completions go on being delivered at the sites, so that nothing is handed
// over.

const (
	// evidenceTime is how long the probe stands. Taking it off takes some tens
	// of milliseconds more, in which it tells nothing, and costs as much.
	evidenceTime = 200 * time.Millisecond
	// evidenceEvery is the least time from one to the next, and evidencePart
	// the part of a thread's budget that it may take.
	evidenceEvery = 10 * time.Second
	evidencePart  = 0.25
	// evidenceSaved is the most of that budget that is saved up, in which moments
	// follow one another sooner while something is slow: two or three of them, of
	// a thread that does nothing but poll.
	evidenceSaved = 3 * evidenceTime
	// soonEvery is the least time from one to the next out of turn.
	soonEvery = time.Second - evidenceTime
)

// evidence decides when entries are probed beside sites. It touches no probe.
type evidence struct {
	open bool
	// leaving says that the probe may still have cost something since the last turn.
	leaving bool
	// since is when it was opened or closed.
	since time.Time
	next  time.Time
	// every is the least time from one window to the next in turn.
	every time.Duration
	// free says that the present window was opened for idle threads: they pay
	// with time that they do not need.
	free bool
	// seen is the time of the last turn, saved what the busiest thread may still
	// pay.
	seen  time.Time
	saved time.Duration
}

// occasion is what asks for evidence out of turn.
type occasion struct {
	// slow: completions were slow since the last turn. idle: a queue at rest waits
	// for proof that it drained.
	slow, idle bool
}

func newEvidence(every time.Duration, now time.Time) evidence {
	return evidence{since: now, next: now.Add(every), every: every, seen: now, saved: evidenceSaved}
}

// begin is told that no entries are probed beside sites from now on.
func (e *evidence) begin(now time.Time) {
	e.leaving, e.open = e.open, false
	e.since, e.next = now, now.Add(e.every)
}

// turn says whether to probe entries, from now on. spent is what the busiest
// thread paid since the last call, ratio the bound on a thread's cost (0: none).
func (e *evidence) turn(now time.Time, spent time.Duration, ratio float64, wanted occasion) (open bool) {
	e.save(now, spent, ratio)
	if e.open {
		if now.Sub(e.since) >= evidenceTime-turnSlack {
			e.begin(now)
		}
		return e.open
	}
	affordable := ratio <= 0 || e.saved >= evidenceTime
	soon := now.Sub(e.since) >= soonEvery-turnSlack
	switch {
	case affordable && (!now.Before(e.next) || wanted.slow && soon):
		e.open, e.since, e.free = true, now, false
	case wanted.idle && soon:
		e.open, e.since, e.free = true, now, true
	}
	return e.open
}

// save keeps the account of what evidence costs.
func (e *evidence) save(now time.Time, spent time.Duration, ratio float64) {
	e.saved += time.Duration(float64(now.Sub(e.seen)) * ratio * evidencePart)
	if (e.open || e.leaving) && !e.free {
		e.saved -= spent
	}
	e.saved = min(e.saved, evidenceSaved)
	e.seen, e.leaving = now, false
}

// gatherEvidence opens and closes the probe on the entry of a poll_cq that is
// observed at its sites. The returns of posts are probed meanwhile, see turnPost.
func (t *Tracer) gatherEvidence(f *pollFunction, now time.Time, spent time.Duration, wanted occasion) error {
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
