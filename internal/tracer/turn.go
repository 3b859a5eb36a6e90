package tracer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unsafe"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// turnRegularly looks at costs and modes.
func (t *Tracer) turnRegularly(ctx context.Context) {
	every(ctx, turnInterval, func() {
		if err := t.turn(time.Now()); err != nil {
			t.log.Warn("the way of observing was not changed", "error", err)
		}
	})
}

// turn moves every library and every poll_cq on in its mode.
func (t *Tracer) turn(now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	if t.agent.turn(now, t.spent(), t.cfg.MaxAgentCPUCores) {
		t.log.Info("the tracer's own CPU time bounds how much of the time libraries are observed",
			"share", t.agent.share, "max_cores", t.cfg.MaxAgentCPUCores)
	}
	t.costTick++
	if err := t.side.costTick.Set(t.costTick); err != nil {
		return fmt.Errorf("beginning to count costs anew: %w", err)
	}
	idle, err := t.idleLibraries(now)
	errs := []error{err}
	slowed := false
	for _, a := range t.libraries.attachments {
		if err := t.turnLibrary(a, now, idle[a.cookie]); err != nil {
			errs = append(errs, fmt.Errorf("observing %s: %w", a.file.DisplayPath, err))
		}
		slowed = slowed || a.slowed
	}
	errs = append(errs, t.side.interrupts.turn(now, slowed))
	return errors.Join(errs...)
}

func (t *Tracer) turnLibrary(a *attachment, now time.Time, idle bool) error {
	a.slowed = false
	if len(a.polls) == 0 || a.off {
		return nil // libibverbs is called when queues come and go: that is cheap.
	}
	library, err := t.side.libraries.load(a.cookie)
	if err != nil {
		return err
	}
	if err := t.side.libraries.store64(a.cookie, unsafe.Offsetof(library.BusiestNs), 0); err != nil {
		return err
	}
	spent := time.Duration(library.BusiestNs)
	a.slow, a.slowed = library.Slow, library.Slow != a.slow
	// Where every completion is told, none is slow.
	wanted := occasion{slow: a.slowed && t.cfg.Threshold > 0, idle: idle}
	a.hit = a.hit || spent > 0
	settled, err := t.settle(a)
	if err := errors.Join(err, t.govern(a, now, spent, settled)); err != nil {
		return err
	}
	if !a.schedule.open || !settled {
		return nil
	}
	var errs []error
	for _, f := range a.polls {
		errs = append(errs, t.turnPoll(a, f, library.Suspicions, now))
		if f.ladder.mode == modeSite && !a.schedule.governed {
			errs = append(errs, t.gatherEvidence(f, now, spent, wanted))
		}
	}
	for _, f := range a.posts {
		errs = append(errs, t.turnPost(a, f, library, now))
	}
	return errors.Join(errs...)
}

// govern opens and closes the library's windows; settled says that the probes of
// the last one are gone.
func (t *Tracer) govern(a *attachment, now time.Time, spent time.Duration, settled bool) error {
	before := a.schedule.governed
	held := bounds{threadRatio: t.cfg.MaxThreadCPURatio, share: t.agent.share}
	verifying := a.credit.covers(a.compares(), spent, now.Sub(a.schedule.seen), held)
	move := a.schedule.turn(now, spent, verifying || a.paysForEvidence(), held)
	if a.schedule.governed != before {
		t.logSchedule(a)
	}
	switch move {
	case moveClose:
		return t.closeWindow(a)
	case moveOpen:
		if !settled {
			return nil
		}
		if err := t.openWindow(a); err != nil {
			t.turnOff(a, err)
			return nil
		}
		a.failures = 0
	}
	return nil
}

func (t *Tracer) logSchedule(a *attachment) {
	what := "within its bounds again, observed all the time"
	if a.schedule.governed {
		what = "observing costs more than allowed, observed in windows: sums are of what was observed"
	}
	t.log.Log(context.Background(), slog.LevelInfo, what, "library", a.file.DisplayPath,
		"max_thread_cpu_ratio", t.cfg.MaxThreadCPURatio, "max_agent_cpu_cores", t.cfg.MaxAgentCPUCores)
}

// idleLibraries are those with an unsynced queue that is at rest: only empty
// polls prove that it drained. Seeing them costs the poller nothing that it
// needs, since it has nothing to do. It looks once a second.
func (t *Tracer) idleLibraries(now time.Time) (map[uint32]bool, error) {
	if now.Before(t.nextIdle) {
		return nil, nil
	}
	t.nextIdle = now.Add(scanInterval)
	at, err := monotonic()
	if err != nil {
		return nil, err
	}
	idle := map[uint32]bool{}
	err = t.side.forEachQueue(func(_ uint32, q *bpf.TrackerQueue) error {
		if q.EndedNs == 0 && q.Completions > 0 && bpf.TrackerQueueSync(q.Sync) == bpf.TrackerQueueSyncQUEUE_UNSYNCED &&
			at > q.ActivityNs+uint64(drainTime) && at < q.ActivityNs+uint64(10*drainTime) {
			idle[q.Library] = true
		}
		return nil
	})
	return idle, err
}

// drainTime is for how long nothing must happen on a queue that is to be aligned
// by a drain, DRAIN_NS of bpf/sync.h.
const drainTime = time.Second
