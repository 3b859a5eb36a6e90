//go:build backends

package e2e

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// hasty begins the receiver of the shipped configuration anew: with the host of the test,
// and observing all the time, so that the job is followed from its first request.
const hasty = `rdma:
    root_path: %s
    max_thread_cpu_ratio: 1
    max_agent_cpu_cores: 16
    collection_interval: 1s
`

// The configuration that is shipped for nodes delivers all three signals to a gateway,
// over TLS, compressed and with its token, and what is given besides it what the collector
// tells of itself, under the name of the node: two alerts need that.
func TestAgentDeliversToGateway(t *testing.T) {
	a := newAgent(t, "")
	secure := newAuthority(t, a.directory).server()
	secure.ClientAuth = tls.NoClientCert
	gateway := newSink()
	endpoint := overLocalhost(gateway.serveGRPC(t, "localhost:0", secure))
	a.Collector = testbed.StartCollectorOf(t, a.directory, []string{shippedAgent(t, a), shippedTelemetry(t, a)},
		"env", "GATEWAY="+endpoint, "RDMA_TOKEN=secret", "SSL_CERT_FILE="+filepath.Join(a.directory, "ca.pem"))
	a.introduce()
	startJob(t, a.root, nil, "rate", "--rate", "20", "--seconds", "0", "--latency-us", "20000")
	for _, kind := range []string{`{"resourceSpans":`, `{"resourceLogs":`} {
		waitUntil(t, "the gateway has something that begins with "+kind, func() bool { return count(gateway.received(), kind) > 0 })
	}
	hostname, err := os.Hostname()
	require.NoError(t, err)
	for metric, host := range map[string]string{
		"rdma.device.info":         testbed.NodeName,
		"otelcol_rdma_events":      hostname,
		"otelcol_rdma_wqes":        hostname,
		"otelcol_rdma_wqes_posted": hostname,
	} {
		waitUntil(t, "the gateway has "+metric+" of "+host, func() bool { return hosts(t, gateway, metric)[host] })
	}
	assert.Equal(t, map[way]bool{
		{compression: "zstd", authorization: "Bearer secret"}: true,
		{authorization: "Bearer secret"}:                      true, // what it tells of itself
	}, gateway.came())
}

// What two alerts ask for is in Prometheus behind the gateway, also what nothing was
// counted in yet: what begins at more than nothing has no increase.
func TestAgentTellsPrometheusOfItself(t *testing.T) {
	a := newAgent(t, "")
	prometheus := backend.StartPrometheus(t)
	gateway := startGateway(t, prometheus)
	a.Collector = testbed.StartCollectorOf(t, a.directory, []string{shippedAgent(t, a), shippedTelemetry(t, a)},
		"env", "GATEWAY="+gateway.endpoint, "RDMA_TOKEN="+gatewayToken, "SSL_CERT_FILE="+gateway.ca)
	a.introduce()
	hostname, err := os.Hostname()
	require.NoError(t, err)
	for _, series := range []string{
		`otelcol_rdma_wqes_posted_total{host_name=%q}`,
		`otelcol_rdma_wqes{host_name=%q, fate="delivered"}`,
		`otelcol_rdma_events_total{host_name=%q, signal="traces", outcome="queue_full"}`,
		`otelcol_rdma_events_total{host_name=%q, signal="traces", outcome="refused"}`,
		`otelcol_rdma_events_total{host_name=%q, signal="logs", outcome="queue_full"}`,
		`otelcol_rdma_events_total{host_name=%q, signal="logs", outcome="refused"}`,
	} {
		series = fmt.Sprintf(series, hostname)
		waitUntil(t, "Prometheus has "+series, func() bool { return len(prometheus.Query(t, series)) == 1 })
	}
	a.end() // While the gateway takes what it tells of itself last.
}

// hosts are those that sent a metric to a sink.
func hosts(t *testing.T, s *sink, metric string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, request := range s.received() {
		if !strings.HasPrefix(request, `{"resourceMetrics":`) {
			continue
		}
		metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics([]byte(request))
		require.NoError(t, err)
		for _, resource := range metrics.ResourceMetrics().All() {
			host, _ := resource.Resource().Attributes().Get("host.name")
			for _, scope := range resource.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					if m.Name() == metric {
						all[host.Str()] = true
					}
				}
			}
		}
	}
	return all
}

// shippedAgent is config/agent.yaml with places of the test.
func shippedAgent(t *testing.T, a *agent) string {
	t.Helper()
	return shipped(t, "config/agent.yaml", map[string]func() string{
		`rdma:\n`:         func() string { return fmt.Sprintf(hasty, a.root) },
		`/(var|run)/`:     func() string { return a.directory + "/" },
		`localhost:\d+\b`: func() string { return fmt.Sprintf("localhost:%d", testbed.FreePort(t)) },
	})
}

// shippedTelemetry is what is given besides it, with the port of the test and in haste.
func shippedTelemetry(t *testing.T, a *agent) string {
	t.Helper()
	return shipped(t, "config/gateway/agent-telemetry.yaml", map[string]func() string{
		`port: 8888\b`:      func() string { return fmt.Sprintf("port: %d", a.port) },
		`interval: 30000\b`: func() string { return "interval: 1000" },
	})
}

// shipped is a configuration with other places.
func shipped(t *testing.T, path string, places map[string]func() string) string {
	t.Helper()
	content, err := os.ReadFile(testbed.File(t, path))
	require.NoError(t, err)
	text := string(content)
	for place, here := range places {
		require.Regexp(t, place, text)
		text = regexp.MustCompile(place).ReplaceAllStringFunc(text, func(string) string { return here() })
	}
	return text
}
