package rdmareceiver

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func theStuck() verbs.Stuck {
	c := fullCompletion()
	wr := c.WorkRequest
	wr.Operation, wr.WRID, wr.Bytes = verbs.OpRDMARead, 78, 65536
	wr.Posted, wr.Outstanding = 5_000_000_000, 3
	return verbs.Stuck{WorkRequest: wr, Age: 1_250 * time.Millisecond}
}

func theStuckEvent(u verbs.Stuck) stuckEvent {
	who := identify(theHost().processes, u.Queue.Process, zap.NewNop())
	return stuckEvent{stuck: u, process: who, found: theClock().at(u.Posted + uint64(u.Age))}
}

func portDown() verbs.AsyncEvent {
	return verbs.AsyncEvent{Monotonic: 5_000_000_000, Type: verbs.AsyncPortError, Device: "mlx5_1", Port: 1}
}

// overrun is of a CQ whose number is 0, like that of the first of a device.
func overrun() verbs.AsyncEvent {
	return verbs.AsyncEvent{Monotonic: 5_000_000_001, Type: verbs.AsyncCQError, Device: "mlx5_0", Process: trainer, HasCQ: true}
}

func fatalInKernel() verbs.AsyncEvent {
	return verbs.AsyncEvent{
		Monotonic: 5_000_000_002, Type: verbs.AsyncQPFatal, Device: "mlx5_0", Port: 1,
		QPNumber: 0x1234, HasQP: true, CQNumber: 3, HasCQ: true,
	}
}

func theAsyncEvent(a verbs.AsyncEvent) asyncEvent {
	e := asyncEvent{event: a, happened: theClock().at(a.Monotonic)}
	if a.Process.TGID != 0 {
		e.process = identify(theHost().processes, a.Process, zap.NewNop())
	}
	return e
}

func TestAsyncSeverity(t *testing.T) {
	for kind, want := range map[verbs.AsyncEventType]string{
		verbs.AsyncCQError: "ERROR", verbs.AsyncQPFatal: "ERROR", verbs.AsyncDeviceFatal: "ERROR",
		verbs.AsyncPortError: "WARN", verbs.AsyncPortActive: "INFO", verbs.AsyncGIDChange: "INFO", 99: "INFO",
	} {
		if got := severityText(asyncSeverity(kind)); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}

func TestLogsGolden(t *testing.T) {
	ofNobody := theStuck()
	ofNobody.Queue.Process, ofNobody.Poster, ofNobody.CQ, ofNobody.Port = nobody, verbs.Thread{}, 0, 0
	ofNobody.HasCQNumber, ofNobody.CQSize, ofNobody.Setup, ofNobody.Path = false, 0, verbs.Setup{}, verbs.Path{}
	ofNobody.LocalKey, ofNobody.Memory = 0, verbs.Memory{}
	batch := logBatch{
		slow:  theEvents(t, false, fullCompletion(), bareCompletion()),
		stuck: []stuckEvent{theStuckEvent(theStuck()), theStuckEvent(ofNobody)},
		async: []asyncEvent{theAsyncEvent(portDown()), theAsyncEvent(overrun()), theAsyncEvent(fatalInKernel())},
	}
	requireGoldenLogs(t, "logs", buildLogs(batch, theSurroundings()))
}
