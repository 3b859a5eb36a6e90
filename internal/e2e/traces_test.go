//go:build backends

package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// application makes spans with OpenTelemetry's SDK and sends them to the collector on
// its node, as a training script does.
func application(t *testing.T, port int) (tracer trace.Tracer, flush func()) {
	t.Helper()
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithInsecure(),
		otlptracegrpc.WithEndpoint(fmt.Sprintf("localhost:%d", port)))
	require.NoError(t, err)
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter))
	t.Cleanup(func() { assert.NoError(t, provider.Shutdown(context.Background())) })
	return provider.Tracer("trainer"), func() { require.NoError(t, provider.ForceFlush(t.Context())) }
}

// threadSpans is the pinned map by which a tool that knows the span of every thread
// shares it (https://github.com/open-telemetry/opentelemetry-ebpf-instrumentation,
// devdocs/trace-profile-correlation.md).
type threadSpans struct {
	t *testing.T
	*ebpf.Map
}

func pinThreadSpans(t *testing.T, root string) threadSpans {
	t.Helper()
	mount := filepath.Join(root, "sys/fs/bpf")
	require.NoError(t, os.MkdirAll(mount, 0o700))
	require.NoError(t, unix.Mount("bpf", mount, "bpf", 0, ""))
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(mount, unix.MNT_DETACH)) })
	spans, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.LRUHash, KeySize: 8, ValueSize: 24, MaxEntries: 16384})
	require.NoError(t, err)
	t.Cleanup(func() { _ = spans.Close() })
	require.NoError(t, os.Mkdir(filepath.Join(mount, "otel"), 0o700))
	require.NoError(t, spans.Pin(filepath.Join(mount, "otel/traces_ctx_v1")))
	return threadSpans{t, spans}
}

// enter says that a thread is in a span from now on, leave that it is in none.
func (m threadSpans) enter(pid, thread int, span trace.SpanContext) {
	m.t.Helper()
	traceID, spanID := span.TraceID(), span.SpanID()
	require.NoError(m.t, m.Put(uint64(pid)<<32|uint64(thread), append(traceID[:], spanID[:]...)))
}

func (m threadSpans) leave(pid, thread int) {
	m.t.Helper()
	require.NoError(m.t, m.Delete(uint64(pid)<<32|uint64(thread)))
}

// step is a span of the application and when its thread was known to be in it.
type step struct {
	trace.Span
	from, until time.Time
}

// has is false of what was posted close to an end: the clock of the kernel is not
// that of the test.
func (s *step) has(span *backend.Span) bool {
	const close = 5 * time.Millisecond
	start := time.UnixMicro(span.Start)
	return start.After(s.from.Add(close)) && start.Before(s.until.Add(-close))
}

const withJaeger = `  otlp: {protocols: {grpc: {endpoint: "localhost:%d"}}}
exporters:
  otlp_grpc: {endpoint: "%s", tls: {insecure: true}}
service:
  pipelines:
    traces: {receivers: [rdma, otlp], exporters: [otlp_grpc]}
`

// What a thread posts is under the span that it is in, in the trace of the
// application. What another thread of the process posts, as NCCL's proxy does, is
// linked to the TRACEPARENT of the process.
func TestPostsAreInTheTraceOfTheApplication(t *testing.T) {
	port := testbed.FreePort(t)
	a := newAgent(t, "")
	jaeger := backend.StartJaeger(t)
	a.rest = fmt.Sprintf(withJaeger, port, jaeger.GRPC)
	threads := pinThreadSpans(t, a.root)
	a.start()
	tracer, flush := application(t, port)

	ctx, whole := tracer.Start(t.Context(), "training")
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	j := startJob(t, a.root, []string{"TRACEPARENT=" + carrier.Get("traceparent"), "OTEL_SERVICE_NAME=rank"}, "threads",
		"--threads", "2", "--rate", "20", "--latency-us", "300", "--seconds", "0")
	first, second := j.thread("poster 0"), j.thread("poster 1")
	steps := make([]step, 2)
	for i := range steps {
		s := &steps[i]
		_, s.Span = tracer.Start(ctx, "step", trace.WithSpanKind(trace.SpanKindInternal))
		threads.enter(j.PID, first, s.SpanContext())
		s.from = time.Now()
		time.Sleep(time.Second)
		s.until = time.Now()
		threads.leave(j.PID, first)
		s.End()
	}
	j.Stop()
	j.end()
	whole.End()
	flush()
	a.end()

	training := whole.SpanContext()
	checkTree(t, jaeger, training, steps)
	under, beside := 0, 0
	for _, trace := range jaeger.Traces(t, "rank", 100_000) {
		for i := range trace.Spans {
			span := &trace.Spans[i]
			if trace.Processes[span.Process].Service != "rank" {
				continue
			}
			switch thread := span.Number("thread.id"); {
			case thread == first && (steps[0].has(span) || steps[1].has(span)):
				under++
				in := &steps[0]
				if steps[1].has(span) {
					in = &steps[1]
				}
				checkUnder(t, span, in)
			case thread == second:
				beside++
				assert.Empty(t, span.ReferencesOf("CHILD_OF"), "nobody knows a span of this thread")
				assert.NotEqual(t, training.TraceID().String(), span.TraceID)
			}
			assert.Equal(t, []backend.Reference{referenceTo("FOLLOWS_FROM", training)}, span.ReferencesOf("FOLLOWS_FROM"),
				"the TRACEPARENT of the process is linked")
		}
	}
	assert.Positive(t, under)
	assert.Positive(t, beside)
	t.Logf("%d posts under the steps of their thread, %d of the other thread linked to the job", under, beside)
}

// checkTree looks for the trace of the application, with the posts in it.
func checkTree(t *testing.T, jaeger *backend.Jaeger, training trace.SpanContext, steps []step) {
	t.Helper()
	tree, found := jaeger.Trace(t, training.TraceID().String())
	require.True(t, found)
	children := map[string]int{}
	for i := range tree.Spans {
		for _, parent := range tree.Spans[i].ReferencesOf("CHILD_OF") {
			children[parent.SpanID]++
		}
	}
	assert.Equal(t, len(steps), children[training.SpanID().String()], "steps of the training")
	for i := range steps {
		id := steps[i].SpanContext().SpanID()
		assert.Positive(t, children[id.String()], "posts in step %d", i)
	}
}

func checkUnder(t *testing.T, span *backend.Span, in *step) {
	t.Helper()
	assert.Equal(t, "rdma_write "+device, span.Name)
	assert.Equal(t, []backend.Reference{referenceTo("CHILD_OF", in.SpanContext())}, span.ReferencesOf("CHILD_OF"))
	assert.Equal(t, in.SpanContext().TraceID().String(), span.TraceID)
}

func referenceTo(kind string, span trace.SpanContext) backend.Reference {
	traceID, spanID := span.TraceID(), span.SpanID()
	return backend.Reference{Type: kind, TraceID: hex.EncodeToString(traceID[:]), SpanID: hex.EncodeToString(spanID[:])}
}
