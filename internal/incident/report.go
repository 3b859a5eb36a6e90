package incident

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Report is one verdict and what it is about: a burst of one queue pair, or the
// silence of one process on a device.
type Report struct {
	Verdict diagnose.Verdict
	Device  string
	// Port is 0 when it is not known.
	Port uint8
	// Queue is the queue pair. Of a silence only the process in it is set.
	Queue verbs.QueueID
	// Rank is that of the process, nil when it has none. Name is what people call
	// the process, "" when it is not known.
	Rank *int
	Name string
	// First is when the first of the requests was posted, Last when the last one was
	// delivered or looked at; both on CLOCK_MONOTONIC, in nanoseconds.
	First, Last uint64
	// Slow counts completions that were slow or failed, Excess is the time that they
	// lost.
	Slow   uint64
	Excess time.Duration
	// Occasions is how often something was slow: requests that waited at the same
	// time are one. Late is for how long something was. Failed counts completions that
	// failed, but for those that were flushed because something else had failed.
	Occasions uint64
	Late      time.Duration
	Failed    uint64
	// Worst is the longest duration of one of them, Normal what is normal, 0 when
	// that is not known.
	Worst, Normal time.Duration
	// Stuck counts sends that do not complete, Oldest is the age of the oldest.
	Stuck  uint64
	Oldest time.Duration
	// Idle is how long the silence has lasted, 0 for a burst.
	Idle time.Duration
	// Spans are those that were exported of the burst.
	Spans []Span
}

// Span is an exported span of a slow work request.
type Span struct {
	TraceID  [16]byte
	SpanID   [8]byte
	Duration time.Duration
}

// weight says how bad a report is: the time that was lost.
func (r *Report) weight() time.Duration { return max(r.Excess, r.Oldest, r.Idle) }

// hasQueue is false of a silence, which is of no queue pair.
func (r *Report) hasQueue() bool { return r.Idle == 0 }
