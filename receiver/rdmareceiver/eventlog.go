package rdmareceiver

import (
	"slices"
	"sync"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// maxRecentEvents and recentEvents are how many asynchronous events are kept for
	// verdicts, and for how long.
	maxRecentEvents = 64
	recentEvents    = 10 * time.Second
)

// eventLog keeps what devices told of late. It is safe for concurrent use.
type eventLog struct {
	mu     sync.Mutex
	events []verbs.AsyncEvent
}

func (l *eventLog) add(e verbs.AsyncEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) == maxRecentEvents {
		l.events = slices.Delete(l.events, 0, 1)
	}
	l.events = append(l.events, e)
}

// since returns the events from a while before a moment on.
func (l *eventLog) since(start uint64) []verbs.AsyncEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	var recent []verbs.AsyncEvent
	for _, e := range l.events {
		if e.Monotonic+uint64(recentEvents) >= start {
			recent = append(recent, e)
		}
	}
	return recent
}
