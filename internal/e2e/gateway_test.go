//go:build backends

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/launch"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

const (
	gatewayConfig = "config/gateway/gateway.yaml"
	// kubernetesConfig is given besides it.
	kubernetesConfig = "config/gateway/kubernetes.yaml"
	gatewayToken     = "a-token"
)

// gateway is contrib's components with the configuration that ships, in front of a
// sink and a Prometheus.
type gateway struct {
	*launch.Child
	// endpoint takes OTLP/gRPC, with a certificate of the authority in the file ca.
	endpoint, ca string
	connection   *grpc.ClientConn
	sink         *sink
}

// startGateway runs the shipped configuration with the addresses of this test, and
// decides on traces sooner.
func startGateway(t *testing.T, prometheus *backend.Prometheus) *gateway {
	t.Helper()
	directory := t.TempDir()
	authority := newAuthority(t, directory)
	authority.issue("gateway")
	g := &gateway{
		endpoint: fmt.Sprintf("localhost:%d", testbed.FreePort(t)), ca: filepath.Join(directory, "ca.pem"), sink: newSink(),
	}
	text, err := os.ReadFile(testbed.File(t, gatewayConfig))
	require.NoError(t, err)
	changed := string(text)
	for old, with := range map[string]string{
		"0.0.0.0:4317":                        g.endpoint,
		"/etc/otelcol-contrib/tls.crt":        filepath.Join(directory, "gateway.pem"),
		"/etc/otelcol-contrib/tls.key":        filepath.Join(directory, "gateway.key"),
		"tempo:4317":                          g.sink.serveGRPC(t, "localhost:0", nil),
		"http://loki:3100/otlp":               g.sink.serveHTTP(t, nil),
		"http://prometheus:9090/api/v1/write": prometheus.URL + "/api/v1/write",
		"decision_wait: 15s":                  "decision_wait: 1s",
		"service:\n":                          "service:\n  telemetry: {metrics: {level: none}}\n",
	} {
		require.Contains(t, changed, old)
		changed = strings.ReplaceAll(changed, old, with)
	}
	config := filepath.Join(directory, "gateway.yaml")
	require.NoError(t, os.WriteFile(config, []byte(changed), 0o644))
	t.Setenv("RDMA_TOKEN", gatewayToken)
	g.Child, err = launch.Start(t.Context(), filepath.Join(directory, "log"), testbed.Built(t, "tools/gateway", "backends"), "--config", config)
	require.NoError(t, err)
	t.Cleanup(func() {
		g.Stop()
		_ = g.Wait() // The test has asked for what it cares about.
	})
	require.NoError(t, g.AwaitLine(t.Context(), "Everything is ready", testbed.Patience))
	g.connection, err = grpc.NewClient(g.endpoint, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(authority.pool(), "localhost")))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.connection.Close()) })
	return g
}

// as is a context in which requests show a token.
func as(t *testing.T, token string) context.Context {
	t.Helper()
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
}

// Metrics have the same names and labels whether they come to Prometheus through the
// gateway, by remote write, or to its own OTLP endpoint: rules and dashboards hold
// for both.
func TestMetricsThroughTheGatewayHaveTheSameNames(t *testing.T) {
	testbed.KeepThread(t)
	direct, behind := backend.StartPrometheus(t), backend.StartPrometheus(t)
	g := startGateway(t, behind)
	every := backend.EveryMetric(t)
	require.NoError(t, direct.Take(t.Context(), every))
	want := direct.Labels(t)
	require.NotEmpty(t, want)

	client := pmetricotlp.NewGRPCClient(g.connection)
	_, err := client.Export(as(t, "another"), pmetricotlp.NewExportRequestFromMetrics(every))
	require.Equal(t, codes.Unauthenticated, status.Code(err), "%v", err)
	_, err = client.Export(as(t, gatewayToken), pmetricotlp.NewExportRequestFromMetrics(every))
	require.NoError(t, err)
	waitUntil(t, "all metrics are in Prometheus", func() bool { return len(behind.Labels(t)) >= len(want) })
	assert.Equal(t, want, behind.Labels(t))
	assert.Equal(t, direct.Query(t, `sum(histogram_count(rdma_wqe_duration_seconds))`)[0].Value,
		behind.Query(t, `sum(histogram_count(rdma_wqe_duration_seconds))`)[0].Value, "the histogram is a native one on both ways")
}

// tracesOf are traces of one span each, those numbered as slow with a cause.
func tracesOf(n int, slow map[int]bool) ptrace.Traces {
	traces := ptrace.NewTraces()
	spans := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range n {
		span := spans.AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1, byte(i), byte(i >> 8)})
		span.SetSpanID(pcommon.SpanID{1, byte(i), byte(i >> 8)})
		span.SetName("step")
		if slow[i] {
			span.SetName("slow")
			span.Attributes().PutStr("rdma.slow.cause", "pfc_received")
		}
	}
	return traces
}

// What is slow is kept, whenever it comes, and each once; of the rest a part; logs go
// through.
func TestGatewayKeepsWhatIsSlow(t *testing.T) {
	testbed.KeepThread(t)
	g := startGateway(t, backend.StartPrometheus(t))
	const all = 500
	slow := map[int]bool{17: true, 250: true, 499: true}
	_, err := ptraceotlp.NewGRPCClient(g.connection).Export(as(t, gatewayToken), ptraceotlp.NewExportRequestFromTraces(tracesOf(all, slow)))
	require.NoError(t, err)
	logs := plog.NewLogs()
	logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName("rdma.verdict")
	_, err = plogotlp.NewGRPCClient(g.connection).Export(as(t, gatewayToken), plogotlp.NewExportRequestFromLogs(logs))
	require.NoError(t, err)

	received := func(part string) int { return strings.Count(strings.Join(g.sink.received(), "\n"), part) }
	waitUntil(t, "what is slow has arrived", func() bool { return received(`"name":"slow"`) == len(slow) && received("rdma.verdict") == 1 })
	// Of the traces that were just decided about, most were dropped.
	waitUntil(t, "traces are decided about", func() bool { return received(`"name":"step"`) > len(slow) })
	late := map[int]bool{}
	for i := range 10 {
		late[i] = true
	}
	_, err = ptraceotlp.NewGRPCClient(g.connection).Export(as(t, gatewayToken), ptraceotlp.NewExportRequestFromTraces(tracesOf(len(late), late)))
	require.NoError(t, err)
	waitUntil(t, "what is slow later has arrived", func() bool { return received(`"name":"slow"`) == len(slow)+len(late) })
	g.Stop()
	require.NoError(t, g.Wait())
	assert.Equal(t, len(slow)+len(late), received(`"name":"slow"`))
	kept := received(`"name":"step"`)
	assert.Less(t, kept, all/5, "5 % are to be kept of the others")
	t.Logf("kept %d of %d others", kept, all-len(slow))
}

func TestGatewayConfigurationIsValid(t *testing.T) {
	for _, configs := range [][]string{{gatewayConfig}, {gatewayConfig, kubernetesConfig}} {
		arguments := []string{"validate"}
		for _, path := range configs {
			arguments = append(arguments, "--config", testbed.File(t, path))
		}
		command := exec.CommandContext(t.Context(), testbed.Built(t, "tools/gateway", "backends"), arguments...)
		command.Env = []string{"RDMA_TOKEN=token"}
		output, err := command.CombinedOutput()
		assert.NoError(t, err, "%v: %s", configs, output)
	}
}

// The addition for Kubernetes names the processors of a pipeline anew, and must leave
// none out.
func TestAdditionForKubernetesLeavesNothingOut(t *testing.T) {
	base, addition := processorsOf(t, gatewayConfig), processorsOf(t, kubernetesConfig)
	require.NotEmpty(t, addition)
	for pipeline, processors := range addition {
		assert.Contains(t, processors, "k8sattributes", pipeline)
		assert.Equal(t, base[pipeline], slices.DeleteFunc(processors, func(p string) bool { return p == "k8sattributes" }), pipeline)
	}
}

// processorsOf are those of each pipeline of a configuration.
func processorsOf(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(testbed.File(t, path))
	require.NoError(t, err)
	var config struct {
		Service struct {
			Pipelines map[string]struct{ Processors []string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &config))
	all := map[string][]string{}
	for name, pipeline := range config.Service.Pipelines {
		all[name] = pipeline.Processors
	}
	return all
}
