package tracer

import (
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Of enum absence_kind, bpf/types.h.
const (
	absentRunnable = 0
	absentHeld     = 2
)

// Scheduling returns what the kernel did with a thread from a moment on until now, the
// absence that lasts included; ok is false of one that was not seen to post or poll.
// Interrupted is not told.
func (t *Tracer) Scheduling(tid uint32, since uint64) (s verbs.Scheduling, ok bool) {
	t.meter.run(func() { s, ok = t.scheduling(tid, since) })
	return s, ok
}

func (t *Tracer) scheduling(tid uint32, since uint64) (verbs.Scheduling, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return verbs.Scheduling{}, false
	}
	var slot uint32
	if err := t.side.maps.WatchedThreads.Lookup(tid, &slot); err != nil {
		return verbs.Scheduling{}, false
	}
	schedule, ok := agreed(func() (s bpf.TrackerSchedule, err error) {
		return s, t.side.maps.Schedules.Lookup(slot, &s)
	})
	now, err := monotonic()
	if err != nil || !ok {
		return verbs.Scheduling{}, false
	}
	return schedulingBetween(&schedule, since, now, t.self), true
}

// readsToAgree is how often a schedule is read until it is given up.
const readsToAgree = 8

// agreed is what two reads one after the other agree on: the kernel copies an element
// while a program writes it, and what is half old and half new is of no absence. ok is
// false when it changes each time, or cannot be read.
func agreed[T comparable](read func() (T, error)) (value T, ok bool) {
	before, err := read()
	for range readsToAgree - 1 {
		if err != nil {
			return value, false
		}
		if value, err = read(); err == nil && value == before {
			return value, true
		}
		before = value
	}
	return value, false
}

// schedulingBetween sums up the absences of a thread, as bpf/scheduling.h does. self is
// the process of this collector.
func schedulingBetween(s *bpf.TrackerSchedule, from, to uint64, self uint32) verbs.Scheduling {
	sum := verbs.Scheduling{}
	count := uint64(len(s.Absences))
	// number is that of the absence that lasts, or of the last one.
	number := (s.Moves + 1) / 2
	whole := false
	var who standIns
	for left := count - 1; left > 0 && !whole; left-- {
		if number == 0 {
			whole = true
			break
		}
		number--
		a := &s.Absences[number%count]
		on := a.OnNs
		if on == 0 {
			on = to
		}
		whole = a.OffNs <= from
		if on <= from || a.OffNs >= to {
			continue
		}
		sum.Switches++
		if a.OnNs != 0 && a.OnCpu != a.OffCpu {
			sum.Migrations++
		}
		wanted := wantedSince(s, number, to)
		waited, runnable := within(a.OffNs, wanted, from, to), within(wanted, on, from, to)
		if a.Kind == absentHeld {
			sum.Stopped += waited
		} else {
			sum.Asleep += waited
		}
		sum.Runnable += runnable
		sum.Longest = max(sum.Longest, waited+runnable)
		if a.OnNs == 0 {
			who.addPresent(s, to, runnable)
		} else {
			who.add(&a.Instead, min(time.Duration(a.Instead.Ns), runnable))
		}
	}
	sum.Instead, sum.ByCollector = who.longest(self)
	sum.Whole = whole && s.SinceNs <= from && s.LostNs <= from
	return sum
}

// wantedSince is from when on the thread wanted a CPU in an absence.
func wantedSince(s *bpf.TrackerSchedule, number, to uint64) uint64 {
	a := &s.Absences[number%uint64(len(s.Absences))]
	switch {
	case a.OnNs != 0:
		return a.WantedNs
	case a.Kind == absentRunnable:
		return a.OffNs
	case s.WokenNs >= a.OffNs:
		return s.WokenNs
	default:
		return to
	}
}

// within is how much of a span is in another one.
func within(start, end, from, to uint64) time.Duration {
	start, end = max(start, from), min(end, to)
	if end <= start {
		return 0
	}
	return time.Duration(end - start)
}
