package rdmareceiver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// fullCompletion has a value for everything.
func fullCompletion() verbs.Completion {
	return verbs.Completion{
		WorkRequest: verbs.WorkRequest{
			Queue:  verbs.QueueID{Process: trainer, Context: 0x7f0000001000, QPNumber: 0x1234},
			QPType: 2, RemoteQP: 0x4321, CQ: 0x7f0000002000, CQNumber: 12, HasCQNumber: true,
			CQSize: 511, Setup: theSetup(), Path: thePath(), Device: "mlx5_0", Port: 1,
			Operation: verbs.OpRDMAWrite, WRID: 77, Bytes: 4 << 20, Outstanding: 12,
			LocalKey: 0x1fff00, Memory: verbs.Memory{Kind: verbs.MemoryDMABuf, Exporter: "nvidia", GPU: "GPU-1"},
			Posted: 5_000_100_000, Poster: verbs.Thread{TID: 4250, CPU: 3, Name: "nccl-proxy"},
		},
		Requests: 8, Delivered: 5_000_550_000,
		Stages: [verbs.NumStages]time.Duration{
			verbs.StagePost: 1_000, verbs.StageQueue: 49_000, verbs.StageDevice: 390_000, verbs.StagePoll: 10_000,
		},
		Known: 1<<verbs.StagePost | 1<<verbs.StageQueue | 1<<verbs.StageDevice | 1<<verbs.StagePoll,
		Busy:  84 * time.Microsecond, HasBusy: true, Threshold: 50 * time.Microsecond,
		Poller: verbs.Thread{TID: 4251, CPU: 40, Name: "nccl-poll"},
		PollerScheduling: verbs.Scheduling{
			Runnable: 8_000, Asleep: 1_000, Longest: 6_000, Interrupted: 21_000, Switches: 2,
			Instead: verbs.Thread{TID: 99, CPU: 40, Name: "dataloader"}, Whole: true,
		},
		HasPollerScheduling: true,
	}
}

// thePath is that of a connection over RoCE v2.
func thePath() verbs.Path {
	return verbs.Path{
		LocalGID:  netip.MustParseAddr("::ffff:192.0.2.1").As16(),
		RemoteGID: netip.MustParseAddr("::ffff:192.0.2.2").As16(),
		GIDType:   verbs.GIDTypeRoCEv2, MTU: 4096, AckTimeout: 67_108_864, MinRNRTimer: 640 * time.Microsecond,
		RetryCount: 7, RNRRetryCount: 0, HasRetryCount: true, HasRNRRetryCount: true,
		ServiceLevel: 3, TrafficClass: 106, HasClass: true,
	}
}

func theSetup() verbs.Setup {
	return verbs.Setup{SendLimit: 128, RecvLimit: 512, SignalsAll: false, HasSignalsAll: true, State: 3, HasState: true}
}

// overInfiniBand is a completion of a connection that has no IP addresses.
func overInfiniBand() verbs.Completion {
	c := fullCompletion()
	c.Path = verbs.Path{RemoteLID: 0x2b, MTU: 2048, HasClass: true}
	c.CQNumber, c.HasCQNumber = 0, true
	return c
}

// bareCompletion is all that must be known of a completion, and it failed.
func bareCompletion() verbs.Completion {
	return verbs.Completion{
		WorkRequest: verbs.WorkRequest{
			Queue:     verbs.QueueID{Process: nobody, Context: 0x7f0000001000, QPNumber: 0x99},
			Operation: verbs.OpSend, Posted: 5_000_000_000,
		},
		Status: verbs.Status(12), VendorError: 0x81, Requests: 1,
		Delivered: 9_000_000_000, Threshold: 50 * time.Microsecond,
	}
}

func theEvents(t *testing.T, parentFromEnv bool, completions ...verbs.Completion) []slowEvent {
	t.Helper()
	return eventsWith(t, func(c *Config) { c.ParentFromTraceparent = parentFromEnv }, completions...)
}

func eventsWith(t *testing.T, change func(*Config), completions ...verbs.Completion) []slowEvent {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	change(cfg)
	ids := &countedIDs{}
	var events []slowEvent
	for _, c := range completions {
		who := identify(theHost().processes, c.Queue.Process, zap.NewNop())
		events = append(events, newSlowEvent(c, who, diagnose.Verdict{Cause: causeUnknown}, theClock(), cfg, ids))
	}
	return events
}

// onRemoteNode is a completion of another device, of which it was not seen when
// the device was done.
func onRemoteNode() verbs.Completion {
	c := fullCompletion()
	c.Device, c.Port = "mlx5_1", 0
	c.Memory = verbs.Memory{Kind: verbs.MemoryHost}
	c.HasCQNumber, c.CQSize, c.Setup, c.Path = false, 0, verbs.Setup{}, verbs.Path{}
	c.Known = 1<<verbs.StagePost | 1<<verbs.StageQueue | 1<<verbs.StageCompletion
	c.Stages = [verbs.NumStages]time.Duration{
		verbs.StagePost: 1_000, verbs.StageQueue: 49_000, verbs.StageCompletion: 400_000,
	}
	return c
}

func TestSpansGolden(t *testing.T) {
	inSpan := fullCompletion()
	inSpan.Span = verbs.SpanContext{TraceID: [16]byte{0xaa, 15: 1}, SpanID: [8]byte{0xbb, 7: 1}}
	events := theEvents(t, false, fullCompletion(), onRemoteNode(), inSpan, overInfiniBand(), bareCompletion())
	requireGoldenTraces(t, "spans", buildTraces(events, theSurroundings()))
}

func TestSpanIsExactToTheNanosecond(t *testing.T) {
	c := fullCompletion()
	c.Delivered = c.Posted + 450_001
	e := theEvents(t, false, c)[0]
	assert.EqualValues(t, 450_001, e.end-e.start)
}

func TestSpanPlacement(t *testing.T) {
	env := theHost().processes.(listedProcesses)[trainer].Trace
	posting := verbs.SpanContext{TraceID: [16]byte{0xaa, 15: 1}, SpanID: [8]byte{0xbb, 7: 1}}
	inSpan := fullCompletion()
	inSpan.Span = posting
	for _, tc := range []struct {
		name          string
		completion    verbs.Completion
		parentFromEnv bool
		trace         pcommon.TraceID
		parent        pcommon.SpanID
		links         int
	}{
		{"TRACEPARENT is a link", fullCompletion(), false, pcommon.TraceID{7: 2, 15: 3}, pcommon.SpanID{}, 1},
		{"TRACEPARENT is the parent by option", fullCompletion(), true, env.TraceID, env.SpanID, 0},
		{"the posting span is the parent", inSpan, false, posting.TraceID, posting.SpanID, 1},
		{"the posting span is the better parent", inSpan, true, posting.TraceID, posting.SpanID, 1},
		{"no context, a root span", bareCompletion(), true, pcommon.TraceID{7: 2, 15: 3}, pcommon.SpanID{}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := theEvents(t, tc.parentFromEnv, tc.completion)[0]
			assert.Equal(t, tc.trace, e.traceID)
			assert.Equal(t, tc.parent, e.parent)
			assert.Len(t, e.links, tc.links)
			assert.False(t, e.spanID.IsEmpty())
		})
	}
}

func TestUnknownValuesAreAbsent(t *testing.T) {
	traces := buildTraces(theEvents(t, false, bareCompletion()), theSurroundings())
	span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	assert.Equal(t, "send", span.Name())
	for _, name := range []string{
		attributeQPType, attributeQPRemoteNumber, attributeCQHandle, attributeDevice, attributeDevicePort,
		attributeDeviceNode, attributeOutstanding, attributeWQEBusy, attributeRank, attributeLocalRank,
		attributeWorldSize, attributeThreadID, attributeThreadName, attributeCPU, attributeCPUNode,
		attributePollRunnable, attributePollSleep, attributePollStopped, attributePollInterrupted, attributePollPreemptedBy,
		attributePollThreadID, attributePollThreadName, attributePollCPU, attributePollCPUNode, attributeLocality,
		attributeCQNumber, attributeCQSize, attributeSQLimit, attributeRQLimit, attributeSQSignalsAll, attributeQPState,
		attributeLocalAddress, attributeLocalGID, attributePeerAddress, attributePeerGID,
		attributePeerLID, attributeQPPathMTU, attributeQPAckTimeout, attributeQPMinRNRTimer, attributeQPRetryCount,
		attributeQPRNRRetryCount, attributeQPServiceLevel, attributeQPTrafficClass,
		attributeStagePrefix + "device", attributeStagePrefix + "completion",
	} {
		_, there := span.Attributes().Get(name)
		assert.False(t, there, name)
	}
	resource := traces.ResourceSpans().At(0).Resource().Attributes()
	service, _ := resource.Get("service.name")
	assert.Equal(t, unknownService, service.Str())
	_, there := resource.Get("process.pid")
	assert.False(t, there, "the pid of a process that is gone may be another's by now")
}

func TestSpansOfOneProcessShareAResource(t *testing.T) {
	traces := buildTraces(theEvents(t, false, fullCompletion(), bareCompletion(), fullCompletion()), theSurroundings())
	require.Equal(t, 2, traces.ResourceSpans().Len())
	assert.Equal(t, 2, traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().Len())
}
