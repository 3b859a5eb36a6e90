package rdmareceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// The event names of the logs.
const (
	eventAsync   = "rdma.async_event"
	eventSlow    = "rdma.wqe.slow"
	eventStuck   = "rdma.wqe.stuck"
	eventVerdict = "rdma.verdict"
)

// logBatch is what one delivery to a logs pipeline is made of.
type logBatch struct {
	slow  []slowEvent
	stuck []stuckEvent
	async []asyncEvent
	// verdicts are of incidents.
	verdicts []verdictEvent
}

func (b logBatch) len() int { return len(b.slow) + len(b.stuck) + len(b.async) + len(b.verdicts) }

// buildLogs builds one record for each event, grouped by process; what is of no
// process is the host's.
func buildLogs(batch logBatch, in surroundings) plog.Logs {
	logs := plog.NewLogs()
	records := map[verbs.ProcessID]plog.LogRecordSlice{}
	of := func(id verbs.ProcessID, who *identity) plog.LogRecordSlice {
		if _, ok := records[id]; !ok {
			rl := logs.ResourceLogs().AppendEmpty()
			resourceOf(in.host, who).MoveTo(rl.Resource())
			sl := rl.ScopeLogs().AppendEmpty()
			setScope(sl.Scope(), in.version)
			records[id] = sl.LogRecords()
		}
		return records[id]
	}
	for i := range batch.slow {
		e := &batch.slow[i]
		fillSlowRecord(of(e.completion.Queue.Process, e.process).AppendEmpty(), e, in)
	}
	for i := range batch.stuck {
		e := &batch.stuck[i]
		fillStuckRecord(of(e.stuck.Queue.Process, e.process).AppendEmpty(), e, in)
	}
	for i := range batch.async {
		e := &batch.async[i]
		fillAsyncRecord(of(e.event.Process, e.process).AppendEmpty(), e, in)
	}
	for i := range batch.verdicts {
		e := &batch.verdicts[i]
		fillVerdictRecord(of(e.record.Incident.Process, e.process).AppendEmpty(), e)
	}
	return logs
}

// fillSlowRecord carries the ids of the span of the same event, whether or not
// that is exported.
func fillSlowRecord(record plog.LogRecord, e *slowEvent, in surroundings) {
	record.SetEventName(eventSlow)
	record.Body().SetStr(slowSentence(&e.completion))
	record.SetTimestamp(e.end)
	record.SetObservedTimestamp(e.end)
	setSeverity(record, plog.SeverityNumberWarn)
	if e.completion.Status != verbs.StatusSuccess {
		setSeverity(record, plog.SeverityNumberError)
	}
	record.SetTraceID(e.traceID)
	record.SetSpanID(e.spanID)
	putSlow(record.Attributes(), e, in)
}

// fillStuckRecord has no span: that of a work request ends with its completion,
// which may never come. A TRACEPARENT of the process is the only context.
func fillStuckRecord(record plog.LogRecord, e *stuckEvent, in surroundings) {
	s := &e.stuck
	record.SetEventName(eventStuck)
	record.Body().SetStr(stuckSentence(s))
	record.SetTimestamp(e.found)
	record.SetObservedTimestamp(e.found)
	setSeverity(record, plog.SeverityNumberError)
	if trace := e.process.facts.Trace; trace.IsValid() {
		record.SetTraceID(pcommon.TraceID(trace.TraceID))
		record.SetSpanID(pcommon.SpanID(trace.SpanID))
	}
	to := record.Attributes()
	to.EnsureCapacity(41)
	putRequest(to, &s.WorkRequest, e.process, in)
	to.PutDouble(attributeWQEAge, secondsOf(s.Age))
}

func setSeverity(record plog.LogRecord, severity plog.SeverityNumber) {
	record.SetSeverityNumber(severity)
	record.SetSeverityText(severityText(severity))
}

func severityText(severity plog.SeverityNumber) string {
	switch {
	case severity >= plog.SeverityNumberError:
		return "ERROR"
	case severity >= plog.SeverityNumberWarn:
		return "WARN"
	default:
		return "INFO"
	}
}
