package rdmareceiver

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// metricBatch is what one collection exports. It tells which series it ends, and
// since when their owners' counters count, and the ends of devices' series.
type metricBatch struct {
	metrics    pmetric.Metrics
	ended      []seriesKey
	owners     map[owner]*ownerState
	deviceEnds pmetric.MetricSlice
}

// endings keeps the ends of series that no pipeline took, to tell of them again:
// a series without an end looks alive for long. It is safe for concurrent use.
type endings struct {
	// most is how many are kept.
	most int

	mu     sync.Mutex
	unsaid map[seriesKey]*ownerState
}

// keep takes the ends of a batch that was not exported.
func (e *endings) keep(batch metricBatch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range batch.ended {
		if len(e.unsaid) >= e.most {
			return
		}
		if e.unsaid == nil {
			e.unsaid = map[seriesKey]*ownerState{}
		}
		e.unsaid[key] = batch.owners[key.owner]
	}
}

// add returns what has ended with what is still to be told, except for series
// that are alive again, and adds the owners of those to the others.
func (e *endings) add(ended []seriesKey, owners map[owner]*ownerState, alive map[seriesKey]*series) []seriesKey {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range ended {
		delete(e.unsaid, key)
	}
	for key, of := range e.unsaid {
		if alive[key] != nil {
			continue
		}
		ended = append(ended, key)
		if owners[key.owner] == nil && of != nil {
			owners[key.owner] = of
		}
	}
	e.unsaid = nil
	return ended
}
