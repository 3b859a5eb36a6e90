package rdmareceiver

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func theStuck() verbs.Stuck {
	c := fullCompletion()
	return verbs.Stuck{
		Queue: c.Queue, QPType: c.QPType, RemoteQP: c.RemoteQP, CQ: c.CQ, Device: c.Device, Port: c.Port,
		Operation: verbs.OpRDMARead, WRID: 78, Bytes: 65536, Posted: 5_000_000_000, Age: 1_250 * time.Millisecond,
		Outstanding: 3, Poster: c.Poster,
	}
}

func theStuckEvent(u verbs.Stuck) stuckEvent {
	who := identify(theHost().processes, u.Queue.Process, zap.NewNop())
	return stuckEvent{stuck: u, process: who, found: theClock().at(u.Posted + uint64(u.Age))}
}

func TestLogsGolden(t *testing.T) {
	ofNobody := theStuck()
	ofNobody.Queue.Process, ofNobody.Poster, ofNobody.CQ, ofNobody.Port = nobody, verbs.Thread{}, 0, 0
	batch := logBatch{
		slow:  theEvents(t, false, fullCompletion(), bareCompletion()),
		stuck: []stuckEvent{theStuckEvent(theStuck()), theStuckEvent(ofNobody)},
	}
	requireGoldenLogs(t, "logs", buildLogs(batch, theSurroundings()))
}
