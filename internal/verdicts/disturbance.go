package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

// Whoever else is at work on this machine may take the processor away from a
// workload. That this was seen is right, whatever was injected, if it is true: by
// the kernel's own account of the workload, which the collector does not read.

// waits are for how long the first thread of a process had wanted a processor and had
// none, at several moments.
type waits struct {
	pid  int
	seen []waited
}

type waited struct {
	at  time.Time
	sum time.Duration
}

// look notes how long it is now.
func (w *waits) look() error {
	path := fmt.Sprintf("/proc/%d/schedstat", w.pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var ran, waiting int64
	if _, err := fmt.Sscan(string(text), &ran, &waiting); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	w.seen = append(w.seen, waited{time.Now(), time.Duration(waiting)})
	return nil
}

// until looks again and again until that moment, and each time does something else as
// well.
func (w *waits) until(ctx context.Context, moment time.Time, also func() error) error {
	for {
		if err := errors.Join(w.look(), also()); err != nil {
			return err
		}
		left := time.Until(moment)
		if left <= 0 {
			return nil
		}
		if err := launch.Sleep(ctx, min(left, pollInterval)); err != nil {
			return err
		}
	}
}

// between is how long it waited from one moment to another: at most by what it waited
// between two looks too much.
func (w *waits) between(from, to time.Time) time.Duration {
	if len(w.seen) == 0 {
		return 0
	}
	first, last := w.seen[0], w.seen[len(w.seen)-1]
	for _, s := range w.seen {
		if !s.at.After(from) {
			first = s
		}
	}
	for _, s := range slices.Backward(w.seen) {
		if !s.at.Before(to) {
			last = s
		}
	}
	return max(last.sum-first.sum, 0)
}

// isOfOthers reports whether a verdict tells of others that took the processor away
// from a workload, which waited for one so long during the incident, though nothing of
// the kind was injected, or not yet.
func (o *outcome) isOfOthers(r *record, waited time.Duration) bool {
	ours := o.scenario.crowded && !r.ended.Before(o.injected)
	return !ours && r.cause == "poller_preempted" && r.worst > 0 && waited >= r.worst/2
}

// hear takes what was said so far, of a workload that waited as that says.
func (o *outcome) hear(said []record, waits *waits) {
	isOfOthers := func(r record) bool { return o.isOfOthers(&r, waits.between(r.began, r.ended)) }
	o.disturbed = slices.ContainsFunc(said, isOfOthers)
	o.verdicts = slices.DeleteFunc(slices.Clone(said), isOfOthers)
}
