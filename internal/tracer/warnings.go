package tracer

import (
	"log/slog"
	"sync"
	"time"
)

// warnInterval is how often a warning that processes can provoke is repeated.
const warnInterval = time.Minute

// warnings tells of what any user can bring about as often as he likes, such as by
// running copies of a program: one line for each reason and interval. The others
// are told by their number when the interval ends, and one by one as debug lines.
// It is safe for concurrent use.
type warnings struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]*said
}

// said is what was told for a reason: when, and how many lines were left out since.
type said struct {
	since time.Time
	left  uint64
}

func newWarnings(log *slog.Logger) *warnings {
	return &warnings{log: log, said: map[string]*said{}}
}

// warn tells of something by its reason, of which there are few: no reason is made of
// what a process chooses. It says whether it did, other than as a debug line.
func (w *warnings) warn(now time.Time, reason string, args ...any) (told bool) {
	told = w.isNew(now, reason)
	if told {
		w.log.Warn(reason, args...)
	} else {
		w.log.Debug(reason, args...)
	}
	return told
}

func (w *warnings) isNew(now time.Time, reason string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.said[reason]; s != nil {
		s.left++
		return false
	}
	w.said[reason] = &said{since: now}
	return true
}

// tellLeft tells how many lines were left out in the intervals that have ended.
func (w *warnings) tellLeft(now time.Time) {
	for reason, left := range w.endIntervals(now) {
		w.log.Warn(reason, "others", left, "within", warnInterval)
	}
}

// endIntervals returns the number of lines that were left out by their reasons. A
// reason for which there were any begins a new interval: the next line is one too
// many, too.
func (w *warnings) endIntervals(now time.Time) map[string]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := map[string]uint64{}
	for reason, s := range w.said {
		switch {
		case now.Sub(s.since) < warnInterval:
		case s.left == 0:
			delete(w.said, reason)
		default:
			left[reason] = s.left
			w.said[reason] = &said{since: now}
		}
	}
	return left
}
