package rdmareceiver

import (
	"context"
	"sync"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// maxAttributions bounds the causes that wait for a collection; what is over it
	// stays unknown in the metrics.
	maxAttributions = 4096
	// reportingDelay is how long a slow completion may be on its way from the kernel
	// side, which has counted it by then.
	reportingDelay = 200 * time.Millisecond
	// judgingPatience is how long a collection waits for the causes of what it
	// counts. They come within two seconds, unless something hangs.
	judgingPatience = 3 * time.Second
)

// counterKey is under which the kernel side counts slow completions, as far as
// causes go.
type counterKey struct {
	process verbs.ProcessID
	device  string
}

// loss is a number of slow completions and the time that they lost.
type loss struct {
	count  uint64
	excess time.Duration
}

func (l loss) plus(other loss) loss {
	return loss{count: l.count + other.count, excess: l.excess + other.excess}
}

func (l loss) minus(other loss) loss {
	return loss{count: l.count - other.count, excess: l.excess - other.excess}
}

// upTo is as much of it as the limit leaves.
func (l loss) upTo(limit loss) loss {
	return loss{count: min(l.count, limit.count), excess: min(l.excess, limit.excess)}
}

// lossByCause has the names of causes as keys.
type lossByCause map[string]loss

// attributions take the causes of slow completions from the judging to the
// metrics, and say how far the judging has come. They are safe for concurrent use.
type attributions struct {
	mu      sync.Mutex
	found   map[counterKey]lossByCause
	entries int
	// through is until when everything that was delivered has been judged, on
	// CLOCK_MONOTONIC. changed is closed when it moves on.
	through uint64
	changed chan struct{}
}

func newAttributions() *attributions {
	return &attributions{found: map[counterKey]lossByCause{}, changed: make(chan struct{})}
}

// add notes the cause of slow completions.
func (a *attributions) add(key counterKey, cause string, more loss) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, known := a.found[key][cause]
	if !known {
		if a.entries >= maxAttributions {
			return
		}
		a.entries++
	}
	if a.found[key] == nil {
		a.found[key] = lossByCause{}
	}
	a.found[key][cause] = before.plus(more)
}

// take returns what was found since the last time.
func (a *attributions) take() map[counterKey]lossByCause {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.found
	a.found, a.entries = map[counterKey]lossByCause{}, 0
	return taken
}

// reach notes that everything delivered until that moment has been judged.
func (a *attributions) reach(through uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if through > a.through {
		a.through = through
		close(a.changed)
		a.changed = make(chan struct{})
	}
}

// await waits until everything delivered before that moment has been judged, or
// the context ends.
func (a *attributions) await(ctx context.Context, through uint64) {
	for {
		a.mu.Lock()
		reached, changed := a.through >= through, a.changed
		a.mu.Unlock()
		if reached {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
