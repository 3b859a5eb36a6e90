package rdmareceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// asyncEvent is an asynchronous event with all that its log record needs.
type asyncEvent struct {
	event verbs.AsyncEvent
	// process owns the queue, nil for an event of a device or of the kernel.
	process  *identity
	happened pcommon.Timestamp
}

// fillAsyncRecord says what happened to which queue, port or device.
func fillAsyncRecord(record plog.LogRecord, e *asyncEvent, in surroundings) {
	a := &e.event
	record.SetEventName(eventAsync)
	record.Body().SetStr(asyncSentence(a))
	record.SetTimestamp(e.happened)
	record.SetObservedTimestamp(e.happened)
	setSeverity(record, asyncSeverity(a.Type))
	to := record.Attributes()
	to.EnsureCapacity(12)
	to.PutStr(attributeAsyncEventType, a.Type.String())
	putString(to, attributeDevice, a.Device)
	putPositive(to, attributeDevicePort, int64(a.Port))
	if node, ok := in.topology.DeviceNode(a.Device); ok {
		to.PutInt(attributeDeviceNode, int64(node))
	}
	if a.HasQP {
		to.PutInt(attributeQPNumber, int64(a.QPNumber))
	}
	if a.HasCQ {
		to.PutInt(attributeCQNumber, int64(a.CQNumber))
	}
	if e.process != nil {
		putProcess(to, a.Process, e.process)
	}
}

// asyncSeverity: what ends a queue or a device is an error, what stops traffic a
// warning, and the rest is for the record.
func asyncSeverity(kind verbs.AsyncEventType) plog.SeverityNumber {
	switch kind {
	case verbs.AsyncCQError, verbs.AsyncQPFatal, verbs.AsyncQPRequestError, verbs.AsyncQPAccessError,
		verbs.AsyncPathMigrationError, verbs.AsyncDeviceFatal, verbs.AsyncSRQError, verbs.AsyncWQFatal:
		return plog.SeverityNumberError
	case verbs.AsyncPortError, verbs.AsyncPathMigrated:
		return plog.SeverityNumberWarn
	default:
		return plog.SeverityNumberInfo
	}
}
