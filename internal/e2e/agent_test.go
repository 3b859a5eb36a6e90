//go:build backends

package e2e

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
// over TLS, compressed and with its token; and besides what the collector tells of itself.
func TestAgentDeliversToGateway(t *testing.T) {
	a := newAgent(t, "")
	secure := newAuthority(t, a.directory).server()
	secure.ClientAuth = tls.NoClientCert
	gateway := newSink()
	endpoint := overLocalhost(gateway.serveGRPC(t, "localhost:0", secure))
	a.Collector = testbed.StartCollector(t, a.directory, shippedAgent(t, a), "env", "GATEWAY="+endpoint, "RDMA_TOKEN=secret",
		"SSL_CERT_FILE="+filepath.Join(a.directory, "ca.pem"))
	a.introduce()
	startJob(t, a.root, nil, "rate", "--rate", "20", "--seconds", "0", "--latency-us", "20000")
	for _, kind := range []string{`{"resourceSpans":`, `{"resourceMetrics":`, `{"resourceLogs":`} {
		waitUntil(t, "the gateway has something that begins with "+kind, func() bool { return count(gateway.received(), kind) > 0 })
	}
	waitUntil(t, "the gateway has what the collector tells of itself", func() bool {
		return slices.ContainsFunc(gateway.received(), func(request string) bool { return strings.Contains(request, `"name":"otelcol_rdma_probes"`) })
	})
	assert.Equal(t, map[way]bool{{compression: "zstd", authorization: "Bearer secret"}: true, {authorization: "Bearer secret"}: true}, gateway.came())
}

// shippedAgent is config/agent.yaml and agent-telemetry.yaml with places of the test.
func shippedAgent(t *testing.T, a *agent) string {
	t.Helper()
	shipped, err := os.ReadFile("../../config/agent.yaml")
	require.NoError(t, err)
	text := string(shipped)
	for place, here := range map[string]func() string{
		`rdma:\n`:         func() string { return fmt.Sprintf(hasty, a.root) },
		`/(var|run)/`:     func() string { return a.directory + "/" },
		`localhost:\d+\b`: func() string { return fmt.Sprintf("localhost:%d", testbed.FreePort(t)) },
	} {
		require.Regexp(t, place, text)
		text = regexp.MustCompile(place).ReplaceAllStringFunc(text, func(string) string { return here() })
	}
	telemetry, err := os.ReadFile("../../config/gateway/agent-telemetry.yaml")
	require.NoError(t, err)
	comment, section, found := strings.Cut(string(telemetry), "service:\n")
	require.True(t, found, comment)
	for shipped, ours := range map[string]string{"port: 8888": fmt.Sprintf("port: %d", a.port), "interval: 30000": "interval: 1000"} {
		require.Contains(t, section, shipped)
		section = strings.Replace(section, shipped, ours, 1)
	}
	return text + section
}
