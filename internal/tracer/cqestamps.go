package tracer

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/deviceclock"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// mostClocks bounds the clocks that are calibrated at once.
	mostClocks = 256
	// confirmedAfter is how long a completion waits for later samples, without
	// which its stamp means nothing, and confirmInterval how often those that
	// waited are looked through.
	confirmedAfter  = 300 * time.Millisecond
	confirmInterval = 100 * time.Millisecond
	// mostWaiting bounds them: further ones are delivered as they are.
	mostWaiting = completionBuffer
	// clockUnused is for how long a clock without a sample is kept.
	clockUnused = time.Minute
)

// clockKey names the clock of a device as one process shows it. The memory of a
// process is its own: it can spoil the clock of no other one.
type clockKey struct {
	process verbs.ProcessID
	device  uint16
}

// stampedCompletion is a completion with the time stamp of its CQ entry.
type stampedCompletion struct {
	verbs.Completion
	device uint16
	stamp  uint64
}

func (c *stampedCompletion) clock() clockKey { return clockKey{c.Queue.Process, c.device} }

// cqeStamps tells by the time stamps of devices when completions were written
// that were delivered late. It may be used by several goroutines.
type cqeStamps struct {
	log *slog.Logger

	mu      sync.Mutex
	clocks  map[clockKey]*processClock
	waiting []stampedCompletion
	closed  bool
}

type processClock struct {
	deviceclock.Clock
	used uint64
	// proven is what was logged of it last.
	proven bool
}

func newCQEStamps(log *slog.Logger) *cqeStamps {
	return &cqeStamps{log: log, clocks: map[clockKey]*processClock{}}
}

// add takes a sample.
func (s *cqeStamps) add(sample *bpf.TrackerCqeSample) {
	if sample.Device >= noDevice {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := clockKey{verbs.ProcessID{TGID: sample.Tgid, Incarnation: sample.Incarnation}, uint16(sample.Device)}
	clock := s.clocks[key]
	if clock == nil {
		if len(s.clocks) >= mostClocks {
			return
		}
		clock = &processClock{}
		s.clocks[key] = clock
	}
	clock.used = sample.SeenNs
	clock.Add(sample.Stamp, int64(sample.SeenNs))
}

// hold keeps a completion until its stamp may be confirmed. It is false for one
// that is to be delivered at once.
func (s *cqeStamps) hold(c verbs.Completion, device uint16, stamp uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stamp == 0 || !endsUntold(&c) || s.closed || len(s.waiting) >= mostWaiting {
		return false
	}
	s.waiting = append(s.waiting, stampedCompletion{c, device, stamp})
	return true
}

// take returns the completions that have waited, those with a confirmed stamp
// split at the moment that it tells. With all it ends holding any.
func (s *cqeStamps) take(now uint64, all bool) []stampedCompletion {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.closed || all
	// They came in the order of the ring buffer, which is nearly that of time.
	slices.SortStableFunc(s.waiting, func(a, b stampedCompletion) int { return cmp.Compare(a.Delivered, b.Delivered) })
	n := 0
	for n < len(s.waiting) && (all || now > s.waiting[n].Delivered+uint64(confirmedAfter)) {
		n++
	}
	due := slices.Clone(s.waiting[:n])
	s.waiting = slices.Delete(s.waiting, 0, n)
	s.split(due)
	for key, clock := range s.clocks {
		if now > clock.used+uint64(clockUnused) {
			delete(s.clocks, key)
		}
	}
	return due
}

// split splits what can be split. Each clock is calibrated once for all of them.
func (s *cqeStamps) split(completions []stampedCompletion) {
	calibrations := map[clockKey]*deviceclock.Calibration{}
	for i := range completions {
		c := &completions[i]
		calibration, tried := calibrations[c.clock()]
		if !tried {
			calibration = s.calibrate(c.clock(), c.Device)
			calibrations[c.clock()] = calibration
		}
		if calibration == nil {
			continue
		}
		if written, err := calibration.When(c.stamp, int64(c.Delivered)); err == nil {
			splitAt(&c.Completion, written)
		}
	}
}

func (s *cqeStamps) calibrate(key clockKey, device string) *deviceclock.Calibration {
	clock := s.clocks[key]
	if clock == nil {
		return nil
	}
	calibration, err := clock.Calibrate()
	if proven := err == nil; proven != clock.proven {
		clock.proven = proven
		s.log.Info("the clock of a device by the stamps of its CQ entries", "device", device, "pid", key.process.TGID,
			"proven", proven, "uncertainty", calibration.Uncertainty, "format", calibration.Format.String(), "reason", err)
	}
	if err != nil {
		return nil
	}
	return &calibration
}

// endsUntold reports whether the time between the device and the poller is not
// told apart.
func endsUntold(c *verbs.Completion) bool {
	return c.Known.Has(verbs.StageCompletion) && !c.Known.Has(verbs.StagePoll)
}

// splitAt splits the last stage of a completion at the moment that its CQ entry
// was written, in nanoseconds of CLOCK_MONOTONIC. A moment before the post is that
// of another entry.
func splitAt(c *verbs.Completion, written int64) {
	if !endsUntold(c) || written < int64(c.Posted) {
		return
	}
	last := c.Stages[verbs.StageCompletion]
	poll := min(max(time.Duration(int64(c.Delivered)-written), 0), last)
	c.Stages[verbs.StagePoll] = poll
	c.Stages[verbs.StageCompletion] = last - poll
	c.Known |= 1 << verbs.StagePoll
	if c.Known.Has(verbs.StageQueue) {
		// The return of the post is known: what is left is the device's alone.
		c.Stages[verbs.StageDevice], c.Stages[verbs.StageCompletion] = last-poll, 0
		c.Known = c.Known&^(1<<verbs.StageCompletion) | 1<<verbs.StageDevice
	}
}

// followStamps reads samples, and delivers what waited for them.
func (t *Tracer) followStamps(ctx context.Context) error {
	reader, err := newReader(t.side.maps.CqeSamples)
	if err != nil {
		return err
	}
	t.run(func() {
		err := readRecords(ctx, reader, func(raw []byte) {
			var sample bpf.TrackerCqeSample
			if err := decodeInto(&sample, raw); err != nil {
				t.undecodable.Add(1)
				return
			}
			t.stamps.add(&sample)
		})
		if err != nil {
			t.log.Error("reading the time stamps of CQ entries ended", "error", err)
		}
	})
	t.run(func() { t.deliverStamped(ctx) })
	return nil
}

func (t *Tracer) deliverStamped(ctx context.Context) {
	ticker := time.NewTicker(confirmInterval)
	defer ticker.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-ticker.C:
		}
		now, err := monotonic()
		if err != nil {
			t.log.Error("completions are delivered without the time stamps of their CQ entries", "error", err)
			ended = true
		}
		for _, c := range t.stamps.take(now, ended) {
			t.deliver(c.Completion, c.device)
		}
	}
}
