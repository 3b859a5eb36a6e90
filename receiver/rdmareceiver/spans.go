package rdmareceiver

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// surroundings are what every builder needs beside the events.
type surroundings struct {
	host     hostFacts
	topology topology
	// peerAddresses lets addresses of peers out.
	peerAddresses bool
	// version is that of the instrumentation scope.
	version string
}

// buildTraces builds one span for each event, in the order given and each before
// its children, grouped by process.
func buildTraces(events []slowEvent, in surroundings) ptrace.Traces {
	traces := ptrace.NewTraces()
	spans := map[verbs.ProcessID]ptrace.SpanSlice{}
	for i := range events {
		e := &events[i]
		process := e.completion.Queue.Process
		if _, ok := spans[process]; !ok {
			rs := traces.ResourceSpans().AppendEmpty()
			processResource(in.host, e.process).MoveTo(rs.Resource())
			ss := rs.ScopeSpans().AppendEmpty()
			setScope(ss.Scope(), in.version)
			spans[process] = ss.Spans()
		}
		fillSpan(spans[process].AppendEmpty(), e, in)
		for _, stage := range e.stages {
			fillStageSpan(spans[process].AppendEmpty(), stage, e)
		}
	}
	return traces
}

func fillSpan(span ptrace.Span, e *slowEvent, in surroundings) {
	c := &e.completion
	span.SetName(spanName(c))
	// Nothing in the peer records the other half, so that client and server
	// kinds would leave edges dangling in service graphs.
	span.SetKind(ptrace.SpanKindInternal)
	span.SetTraceID(e.traceID)
	span.SetSpanID(e.spanID)
	span.SetParentSpanID(e.parent)
	span.SetStartTimestamp(e.start)
	span.SetEndTimestamp(e.end)
	if c.Status != verbs.StatusSuccess {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage(statusMessage(c))
	}
	for _, l := range e.links {
		link := span.Links().AppendEmpty()
		link.SetTraceID(l.traceID)
		link.SetSpanID(l.spanID)
		link.SetFlags(l.flags)
	}
	putSlow(span.Attributes(), e, in)
}

// spanName holds nothing of which there are many: no queue pair, no process.
func spanName(c *verbs.Completion) string {
	if c.Device == "" {
		return c.Operation.String()
	}
	return c.Operation.String() + " " + c.Device
}

func statusMessage(c *verbs.Completion) string {
	if c.VendorError == 0 {
		return c.Status.String()
	}
	return fmt.Sprintf("%s, vendor error 0x%x", c.Status, c.VendorError)
}

// putSlow puts the attributes of a slow or failed completion.
func putSlow(to pcommon.Map, e *slowEvent, in surroundings) {
	c := &e.completion
	to.EnsureCapacity(67)
	putRequest(to, &c.WorkRequest, e.process, in)
	putPoller(to, c.Poller, in.topology)
	putScheduling(to, c)
	putOutcome(to, e)
}

func setScope(scope pcommon.InstrumentationScope, version string) {
	scope.SetName(metadata.ScopeName)
	scope.SetVersion(version)
}
