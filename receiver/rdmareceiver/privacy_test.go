package rdmareceiver

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// secret stands for what people put in the environment of their jobs.
const secret = "hunter2-c0ffee"

// plantedProc writes the files of a process that holds the secret wherever it
// can: in its environment under all sorts of keys, and on its command line.
func plantedProc(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "4242")
	require.NoError(t, os.Mkdir(dir, 0o755))
	write := func(path, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
	}
	write("stat", "cpu  1 0 1 1 0 0 0 0 0 0\nbtime 1767225600\n")
	numbers := strings.TrimSpace(strings.Repeat("0 ", 18) + "7000" + strings.Repeat(" 0", 30))
	write("4242/stat", fmt.Sprintf("4242 (python3) S %s\n", numbers))
	write("4242/cgroup", "0::/system.slice/slurmstepd.scope/job_815/step_0/user/task_0\n")
	write("4242/cmdline", "python3\x00train.py\x00--api-key="+secret+"\x00")
	write("4242/environ", strings.Join([]string{
		"OTEL_SERVICE_NAME=llm-training",
		"OTEL_RESOURCE_ATTRIBUTES=service.namespace=research,db.password=" + secret,
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=" + secret,
		"TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"RANK=9", "LOCAL_RANK=1", "WORLD_SIZE=16",
		"AWS_SECRET_ACCESS_KEY=" + secret,
		"RANK_SECRET=" + secret,
		"XRANK=" + secret,
		secret + "=1",
		"WANDB_API_KEY=" + secret,
	}, "\x00")+"\x00")
	require.NoError(t, os.Symlink("/usr/bin/python3", filepath.Join(dir, "exe")))
	return root
}

// TestNothingOfTheEnvironmentLeaks runs a process with a planted secret through
// the whole receiver and looks for it in all that comes out.
func TestNothingOfTheEnvironmentLeaks(t *testing.T) {
	processes := process.NewCache(process.NewReader(plantedProc(t)), 16)
	r := newRig(t)
	p := handPlatform(r.engine)
	p.openHost = func(string, *slog.Logger) (host, error) {
		h := theHost()
		h.processes = processes
		return h, nil
	}
	r.factory = newFactory(p)
	r.cfg.SlowLogs = true
	core, logged := observer.New(zapcore.DebugLevel)
	r.logger = zap.New(core)
	r.addTraces(r.traces)
	r.addLogs(r.logs)
	r.addMetrics(r.metrics)
	r.engine.set(verbs.Snapshot{
		Series: []verbs.Series{seriesOf(trainer, 100, time.Millisecond)},
		Queues: []verbs.QueueInfo{queueOf(trainer, 1)},
	}, nil)
	r.start()
	r.engine.completions <- fullCompletion()
	r.engine.stuck <- theStuck()
	r.shutdown()

	out := otlp(t, r)
	for _, l := range logged.All() {
		out += fmt.Sprint(l.Message, l.ContextMap())
	}
	assert.NotContains(t, out, secret)
	assert.NotContains(t, out, "hunter2")
	// What is on the allow-list is there, so the secret was within reach.
	for _, allowed := range []string{"llm-training", "research", "815", "python3"} {
		assert.Contains(t, out, allowed)
	}
	require.Equal(t, 1, r.traces.SpanCount())
	for _, event := range []string{eventSlow, eventStuck} {
		require.Len(t, recordsOf(r.logs, event), 1)
	}
	require.Len(t, recordsOf(r.logs, eventVerdict), 2, "opened and closed")
	rank, ok := r.traces.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().Get(attributeRank)
	require.True(t, ok)
	assert.EqualValues(t, 9, rank.Int())
}

// otlp returns all that the pipelines received as it goes over the wire.
func otlp(t *testing.T, r *rig) string {
	t.Helper()
	var out strings.Builder
	for _, td := range r.traces.AllTraces() {
		wire, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.NoError(t, err)
		out.Write(wire)
	}
	for _, ld := range r.logs.AllLogs() {
		wire, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
		require.NoError(t, err)
		out.Write(wire)
	}
	for _, md := range r.metrics.AllMetrics() {
		wire, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		require.NoError(t, err)
		out.Write(wire)
	}
	return out.String()
}
