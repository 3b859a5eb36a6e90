package rdmareceiver

import (
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// slowEvent is a slow or failed completion with all that its span and its log
// need. Both are built from one, so that their ids agree.
type slowEvent struct {
	completion verbs.Completion
	process    *identity
	// verdict says why it was slow.
	verdict diagnose.Verdict
	// start and end are wall time.
	start, end pcommon.Timestamp
	traceID    pcommon.TraceID
	spanID     pcommon.SpanID
	parent     pcommon.SpanID
	// links are trace contexts that the span belongs to without being a child.
	links []spanLink
	// stages are the children of the span, by option.
	stages []stageSpan
}

type spanLink struct {
	traceID pcommon.TraceID
	spanID  pcommon.SpanID
	flags   uint32
}

// stuckEvent is a send that does not complete.
type stuckEvent struct {
	stuck   verbs.Stuck
	process *identity
	// found is when it was found, in wall time.
	found pcommon.Timestamp
}

// idSource makes span and trace ids.
type idSource interface {
	Uint64() uint64
}

var _ idSource = (*rand.ChaCha8)(nil)

// newSlowEvent places a completion in wall time and in a trace.
func newSlowEvent(c verbs.Completion, who *identity, why diagnose.Verdict, clock *wallClock, cfg *Config, ids idSource) slowEvent {
	e := slowEvent{completion: c, process: who, verdict: why}
	e.start, e.end = clock.interval(c.Posted, c.Delivered)
	e.place(cfg.ParentFromTraceparent, ids)
	if cfg.StageSpans {
		e.stages = stageSpans(&c, e.start, e.end, ids)
	}
	return e
}

// place chooses the parent. The span of the posting thread is the best one, if
// it is known. TRACEPARENT names the work that the whole process is part of: it
// becomes a link, or by option the parent of what has no better one.
func (e *slowEvent) place(parentFromEnv bool, ids idSource) {
	e.spanID = newSpanID(ids)
	env := e.process.facts.Trace
	posting := e.completion.Span
	switch {
	case posting != verbs.SpanContext{}:
		e.traceID, e.parent = posting.TraceID, posting.SpanID
	case env.IsValid() && parentFromEnv:
		e.traceID, e.parent = env.TraceID, env.SpanID
		return
	default:
		e.traceID = newTraceID(ids)
	}
	if env.IsValid() {
		e.links = append(e.links, spanLink{traceID: env.TraceID, spanID: env.SpanID, flags: uint32(env.Flags)})
	}
}

// newSpanID and newTraceID return ids that are not zero, which would be
// invalid.
func newSpanID(ids idSource) (id pcommon.SpanID) {
	for id.IsEmpty() {
		binary.BigEndian.PutUint64(id[:], ids.Uint64())
	}
	return id
}

func newTraceID(ids idSource) (id pcommon.TraceID) {
	for id.IsEmpty() {
		binary.BigEndian.PutUint64(id[:8], ids.Uint64())
		binary.BigEndian.PutUint64(id[8:], ids.Uint64())
	}
	return id
}
