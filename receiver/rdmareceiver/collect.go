package rdmareceiver

import (
	"cmp"
	"context"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// collected is a snapshot that waits for the causes of what it counts.
type collected struct {
	snapshot verbs.Snapshot
	devices  *fabric.Sample
	// through is when what it counts has been judged, 0 when it counts nothing slow
	// that is new.
	through uint64
}

// collectRegularly collects every interval, and once more at the end, when all
// that was slow has been judged.
func (s *session) collectRegularly(stop context.Context) {
	defer close(s.snapshots)
	tick := time.NewTicker(s.cfg.CollectionInterval)
	defer tick.Stop()
	slow := uint64(0)
	for {
		select {
		case <-tick.C:
			slow = s.collect(slow)
		case <-stop.Done():
			s.awaitSettled()
			s.collect(slow)
			return
		}
	}
}

// awaitSettled waits for the last verdicts, but not for ever.
func (s *session) awaitSettled() {
	timeout := time.NewTimer(judgingPatience)
	defer timeout.Stop()
	select {
	case <-s.settled:
	case <-timeout.C:
	}
	s.causes.reach(math.MaxUint64)
}

// collect takes a snapshot. It takes and returns how many slow completions
// snapshots count.
func (s *session) collect(before uint64) (slow uint64) {
	snap, err := s.engine.Snapshot()
	health := cmp.Or(err, s.engine.Impaired())
	s.status.reportHealth(health)
	s.shown.impair(health)
	if err != nil {
		s.logger.Warn("The counters of the tracer could not be read; they are read again at the next collection.", zap.Error(err))
		return before
	}
	s.shown.collect(s, &snap)
	c := collected{snapshot: snap}
	if s.devices != nil {
		c.devices = s.devices.latest()
	}
	slow = slowOf(&snap)
	if slow != before {
		c.through = s.monotonic() + uint64(reportingDelay)
	}
	s.snapshots <- c
	return slow
}

func slowOf(snap *verbs.Snapshot) (n uint64) {
	for i := range snap.Series {
		n += snap.Series[i].Slow
	}
	return n
}

// exportSnapshots exports each snapshot once the causes of what it counts are
// known.
func (s *session) exportSnapshots(deliver context.Context) {
	for c := range s.snapshots {
		if s.pipelines.metrics.wanted {
			patience, cancel := context.WithTimeout(deliver, judgingPatience)
			s.causes.await(patience, c.through)
			cancel()
			s.exportMetrics(&c)
		}
		s.self.keep(&c.snapshot, len(s.aggregator.series))
	}
}

func (s *session) exportMetrics(c *collected) {
	now := s.clock.at(c.snapshot.Monotonic)
	s.aggregator.foundSince(s.causes.take(), *s.active.Load())
	ended, owners := s.aggregator.add(&c.snapshot, now)
	ended = s.endings.add(ended, owners, s.aggregator.series)
	for _, e := range s.takeExemplars() {
		s.aggregator.addExemplar(e.key, e.exemplar)
	}
	batch := metricBatch{metrics: s.emitter.emit(s.aggregator, ended, owners, now), ended: ended, owners: owners}
	if s.devices != nil {
		batch.deviceEnds = s.deviceEmitter.emit(batch.metrics, c.devices, s.aggregator.transmitted)
	}
	if batch.metrics.DataPointCount() > 0 {
		s.metrics.put(batch)
	}
}
