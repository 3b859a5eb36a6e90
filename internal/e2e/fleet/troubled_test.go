//go:build backends

package fleet

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

const (
	// oneIn nodes has trouble.
	oneIn = 10
	// verdictsApart is how often an open incident says something, in seconds.
	verdictsApart = 10
	day           = 24 * 60 * 60

	// What a test of the receiver writes and holds its code against.
	slowSpans  = "../../../receiver/rdmareceiver/testdata/golden/cost-spans.yaml"
	oneVerdict = "../../../receiver/rdmareceiver/testdata/golden/cost-verdict.yaml"
)

// troubled is a node on which something is slow all the time: each second it exports as
// many spans as it may, and every ten seconds a verdict.
type troubled struct {
	spans   ptrace.Traces
	verdict plog.Logs
	traces  ptraceotlp.GRPCClient
	logs    plogotlp.GRPCClient
	// Bytes that went out and requests that they were.
	spanBytes, verdictBytes *atomic.Int64
	spanCount, verdictCount int64
}

func startTroubled(t *testing.T, count int, gateway string) []*troubled {
	t.Helper()
	all := make([]*troubled, 0, count)
	for range count {
		n := &troubled{}
		var err error
		n.spans, err = golden.ReadTraces(slowSpans)
		require.NoError(t, err)
		n.verdict, err = golden.ReadLogs(oneVerdict)
		require.NoError(t, err)
		connection, wire := connect(t, gateway)
		n.traces, n.spanBytes = ptraceotlp.NewGRPCClient(connection), wire
		connection, wire = connect(t, gateway)
		n.logs, n.verdictBytes = plogotlp.NewGRPCClient(connection), wire
		all = append(all, n)
	}
	return all
}

// sendTroubles has all of them send for some seconds.
func sendTroubles(ctx context.Context, nodes []*troubled, seconds int) error {
	errs := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() { errs <- n.sendEach(ctx, seconds) }()
	}
	var all error
	for range nodes {
		all = errors.Join(all, <-errs)
	}
	return all
}

func (n *troubled) sendEach(ctx context.Context, seconds int) error {
	for second := range seconds {
		if err := errors.Join(n.send(ctx, second%verdictsApart == 0), launch.Sleep(ctx, time.Second)); err != nil {
			return err
		}
	}
	return nil
}

func (n *troubled) send(ctx context.Context, withVerdict bool) error {
	now := time.Now()
	n.stamp(now)
	traces := ptraceotlp.NewExportRequestFromTraces(n.spans)
	n.spanCount++
	_, err := insist(ctx, now, func() (ptraceotlp.ExportResponse, error) { return n.traces.Export(ctx, traces) })
	if err != nil || !withVerdict {
		return err
	}
	logs := plogotlp.NewExportRequestFromLogs(n.verdict)
	n.verdictCount++
	_, err = insist(ctx, now, func() (plogotlp.ExportResponse, error) { return n.logs.Export(ctx, logs) })
	return err
}

// stamp makes spans others than those before: ids are random, and do not compress.
func (n *troubled) stamp(now time.Time) {
	for _, resource := range n.spans.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				lasted := span.EndTimestamp() - span.StartTimestamp()
				span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
				span.SetStartTimestamp(span.EndTimestamp() - lasted)
				var id [16]byte
				binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
				binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
				span.SetTraceID(id)
				span.SetSpanID([8]byte(id[8:]))
			}
		}
	}
}

// assertTroubles checks that all that they sent was handed on, and that it is as many
// bytes as the document says. What HTTP/2 adds weighs more than in requests of metrics,
// which are larger.
func assertTroubles(t *testing.T, nodes []*troubled, g *gateway) {
	t.Helper()
	var spanBytes, verdictBytes, requests, verdicts int64
	for _, n := range nodes {
		spanBytes, requests = spanBytes+n.spanBytes.Load(), requests+n.spanCount
		verdictBytes, verdicts = verdictBytes+n.verdictBytes.Load(), verdicts+n.verdictCount
	}
	g.awaitSent(t, "otelcol_exporter_sent_spans", int(requests)*nodes[0].spans.SpanCount())
	g.awaitSent(t, "otelcol_exporter_sent_log_records", int(verdicts))
	want := readTroubles(t)
	assert.InEpsilon(t, want.spans, spanBytes*day/requests, 0.15, "bytes of spans a day")
	assert.InEpsilon(t, want.verdict, verdictBytes/verdicts, 0.15, "bytes of a verdict")
	t.Logf("%d of them in trouble: spans are %d MB a day on the wire, a verdict is %d bytes", len(nodes), spanBytes*day/requests/1e6, verdictBytes/verdicts)
}
