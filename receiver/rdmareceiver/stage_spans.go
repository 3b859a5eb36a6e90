package rdmareceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// stageSpan is one stage of a work request, as a child of its span.
type stageSpan struct {
	stage      verbs.Stage
	spanID     pcommon.SpanID
	start, end pcommon.Timestamp
}

// stageSpans lays the stages of a work request one after another between its
// start and its end, in wall time. A stage that took no time has no span.
func stageSpans(c *verbs.Completion, start, end pcommon.Timestamp, ids idSource) []stageSpan {
	var spans []stageSpan
	for stage := range verbs.NumStages {
		spent := c.Stages[stage]
		if !c.Known.Has(stage) || spent <= 0 {
			continue
		}
		stop := min(start+pcommon.Timestamp(spent), end)
		spans = append(spans, stageSpan{stage: stage, spanID: newSpanID(ids), start: start, end: stop})
		start = stop
	}
	return spans
}

// fillStageSpan leaves the status to the span of the work request: it is not
// known of a stage that it failed.
func fillStageSpan(span ptrace.Span, s stageSpan, of *slowEvent) {
	span.SetName(s.stage.String())
	span.SetKind(ptrace.SpanKindInternal)
	span.SetTraceID(of.traceID)
	span.SetSpanID(s.spanID)
	span.SetParentSpanID(of.spanID)
	span.SetStartTimestamp(s.start)
	span.SetEndTimestamp(s.end)
	span.Attributes().PutStr(attributeStage, s.stage.String())
	putString(span.Attributes(), attributeDevice, of.completion.Device)
}

// spanCount is how many spans the events become.
func spanCount(events []slowEvent) int {
	n := len(events)
	for i := range events {
		n += len(events[i].stages)
	}
	return n
}
