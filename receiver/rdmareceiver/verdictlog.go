package rdmareceiver

import (
	"encoding/hex"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/incident"
	"github.com/rdmaradar/rdmaradar/internal/text"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// verdictEvent is a record of an incident with all that its log record needs.
type verdictEvent struct {
	record incident.Record
	// process is nil unless the incident is of one process.
	process *identity
	body    string
	// first, last and found are wall time: the first and the last request, and the
	// record.
	first, last, found pcommon.Timestamp
}

func newVerdictEvent(r incident.Record, title func(string) string, clock *wallClock, now uint64) verdictEvent {
	return verdictEvent{
		record: r, body: text.Clean(verdictText(&r, title), maxVerdictText),
		first: clock.at(r.Incident.First), last: clock.at(r.Incident.Last), found: clock.at(now),
	}
}

// fillVerdictRecord says in words and in attributes why something is slow.
func fillVerdictRecord(record plog.LogRecord, e *verdictEvent) {
	i := &e.record.Incident
	record.SetEventName(eventVerdict)
	record.SetTimestamp(e.found)
	record.SetObservedTimestamp(e.found)
	setSeverity(record, plog.SeverityNumberWarn)
	if e.record.State == incident.Closed {
		setSeverity(record, plog.SeverityNumberInfo)
	}
	if worst, ok := i.WorstSpan(); ok {
		record.SetTraceID(worst.TraceID)
		record.SetSpanID(worst.SpanID)
	}
	record.Body().SetStr(e.body)
	to := record.Attributes()
	to.EnsureCapacity(26)
	putVerdict(to, &i.Verdict)
	putIncident(to, e)
	putString(to, attributeDevice, i.Device)
	putPositive(to, attributeDevicePort, int64(i.Port))
	if e.process != nil {
		putProcess(to, i.Process, e.process)
	}
}

func putVerdict(to pcommon.Map, v *diagnose.Verdict) {
	to.PutStr(attributeSlowCause, v.Cause)
	putString(to, attributeConfidence, v.Confidence.String())
	putEvidence(to, attributeVerdictFor, v.For)
	putEvidence(to, attributeVerdictAgainst, v.Against)
	putTexts(to, attributeVerdictMissing, v.Missing)
	putTexts(to, attributeVerdictOthers, v.Others)
	putString(to, attributeVerdictRemedy, text.Clean(v.Remedy, maxClause))
}

func putIncident(to pcommon.Map, e *verdictEvent) {
	i := &e.record.Incident
	to.PutStr(attributeIncidentID, i.ID)
	to.PutStr(attributeIncidentState, e.record.State.String())
	to.PutInt(attributeIncidentSlow, int64(i.Slow))
	to.PutDouble(attributeIncidentExcess, secondsOf(i.Excess))
	putDuration(to, attributeIncidentWorst, max(i.Worst, i.Oldest))
	putPositive(to, attributeIncidentStuck, int64(i.Stuck))
	putDuration(to, attributeIncidentSilence, i.Idle)
	to.PutStr(attributeIncidentFirst, e.first.AsTime().Format(time.RFC3339Nano))
	to.PutStr(attributeIncidentLast, e.last.AsTime().Format(time.RFC3339Nano))
	putNumbers(to, attributeIncidentQPs, i.Queues.Values, func(q verbs.QueueID) int64 { return int64(q.QPNumber) })
	putNumbers(to, attributeIncidentPIDs, pidsOf(i.Processes.Values), func(pid uint32) int64 { return int64(pid) })
	putNumbers(to, attributeIncidentRanks, i.Ranks.Values, func(rank int) int64 { return int64(rank) })
	spans := make([]string, 0, len(i.Spans))
	for _, s := range i.Spans {
		spans = append(spans, hex.EncodeToString(s.TraceID[:])+"-"+hex.EncodeToString(s.SpanID[:]))
	}
	putTexts(to, attributeIncidentSpans, spans)
}

// pidsOf leaves out consumers in the kernel, which are no processes.
func pidsOf(processes []verbs.ProcessID) []uint32 {
	var pids []uint32
	for _, id := range processes {
		if !id.InKernel() {
			pids = append(pids, id.TGID)
		}
	}
	return pids
}

func putEvidence(to pcommon.Map, key string, all []diagnose.Evidence) {
	texts := make([]string, 0, len(all))
	for _, e := range all {
		texts = append(texts, e.Text)
	}
	putTexts(to, key, texts)
}

// putTexts puts a list, unless it is empty. Names of threads and programs are in
// evidence, and those are foreign.
func putTexts(to pcommon.Map, key string, all []string) {
	if len(all) == 0 {
		return
	}
	list := to.PutEmptySlice(key)
	list.EnsureCapacity(len(all))
	for _, t := range all {
		list.AppendEmpty().SetStr(text.Clean(t, maxClause))
	}
}

func putNumbers[T any](to pcommon.Map, key string, all []T, number func(T) int64) {
	if len(all) == 0 {
		return
	}
	list := to.PutEmptySlice(key)
	list.EnsureCapacity(len(all))
	for _, value := range all {
		list.AppendEmpty().SetInt(number(value))
	}
}
