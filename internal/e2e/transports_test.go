//go:build backends

package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// transport is one exporter of the collector and where it delivers.
type transport struct {
	// exporter is its name, keys are its keys but for the endpoint.
	exporter, keys string
	// compression is what requests say of theirs, client who signed in.
	compression, client string
	// secure has the sink ask for certificates.
	secure bool
	sink   *sink
}

const signedIn = `tls: {ca_file: "{dir}/ca.pem", cert_file: "{dir}/agent.pem", key_file: "{dir}/agent.key"}`

func transports() []transport {
	return []transport{
		{exporter: "otlp_grpc/plain", keys: "compression: none, tls: {insecure: true}"},
		{exporter: "otlp_grpc/gzip", keys: "compression: gzip, tls: {insecure: true}", compression: "gzip"},
		{exporter: "otlp_grpc/zstd", keys: "compression: zstd, tls: {insecure: true}", compression: "zstd"},
		{exporter: "otlp_grpc/mtls", keys: "compression: gzip, " + signedIn, compression: "gzip", secure: true, client: "agent"},
		{exporter: "otlp_http/plain", keys: "compression: none"},
		{exporter: "otlp_http/gzip", keys: "compression: gzip", compression: "gzip"},
		{exporter: "otlp_http/mtls", keys: "compression: gzip, " + signedIn, compression: "gzip", secure: true, client: "agent"},
	}
}

// stranger has no certificate, and so must get nowhere.
const stranger = "otlp_grpc/stranger"

const withAll = `exporters:
  file: {path: "{dir}/out.jsonl"}
%sservice:
  pipelines:
    traces: {receivers: [rdma], exporters: [%[2]s]}
    metrics: {receivers: [rdma], exporters: [%[2]s]}
    logs: {receivers: [rdma], exporters: [%[2]s]}
`

// Everything arrives whole over every transport: each request that the file exporter
// wrote, byte for byte, and none besides. Slurm's ids of the job are among it.
func TestEverythingArrivesOverEveryTransport(t *testing.T) {
	a := newAgent(t, "")
	authority := newAuthority(t, a.directory)
	authority.issue("agent")
	server := authority.server()
	all := transports()
	var sections strings.Builder
	names := []string{"file", stranger}
	for i := range all {
		fmt.Fprintf(&sections, "  %s: {endpoint: %q, %s}\n", all[i].exporter, all[i].serve(t, server), all[i].keys)
		names = append(names, all[i].exporter)
	}
	refusing := newSink()
	fmt.Fprintf(&sections, "  %s: {endpoint: %q, tls: {ca_file: \"{dir}/ca.pem\"}, retry_on_failure: {enabled: false}}\n",
		stranger, overLocalhost(refusing.serveGRPC(t, "localhost:0", server)))
	a.keys = "slow_logs: true"
	a.rest = fmt.Sprintf(withAll, sections.String(), strings.Join(names, ", "))
	a.start()
	startJob(t, a.root, slurmTask(), "rate", "--rate", "200", "--seconds", "4", "--latency-us", "300").end()
	waitUntil(t, "the stranger fails", func() bool { return a.own("otelcol_exporter_send_failed_spans", "exporter", stranger) > 0 })
	a.end()

	want := wrote(t, a.file())
	for _, kind := range []string{`{"resourceSpans":`, `{"resourceMetrics":`, `{"resourceLogs":`} {
		n := count(want, kind)
		assert.Positive(t, n, kind)
		t.Logf("%d requests of %s", n, kind)
	}
	assertSlurm(t, want)
	for i := range all {
		all[i].check(t, want)
	}
	assert.Empty(t, refusing.received())
}

// serve has the sink listen and returns the endpoint of the exporter.
func (tr *transport) serve(t *testing.T, server *tls.Config) string {
	t.Helper()
	tr.sink = newSink()
	if !tr.secure {
		server = nil
	}
	if strings.HasPrefix(tr.exporter, "otlp_http") {
		return overLocalhost(tr.sink.serveHTTP(t, server))
	}
	return overLocalhost(tr.sink.serveGRPC(t, "localhost:0", server))
}

// overLocalhost is an endpoint by the name that is in the certificates.
func overLocalhost(endpoint string) string {
	return strings.Replace(endpoint, "127.0.0.1", "localhost", 1)
}

func (tr *transport) check(t *testing.T, want []string) {
	t.Helper()
	got := tr.sink.received()
	slices.Sort(got)
	assert.Len(t, got, len(want), tr.exporter)
	assert.True(t, slices.Equal(want, got), "%s delivered something else than the file has", tr.exporter)
	assert.Equal(t, map[way]bool{{compression: tr.compression, client: tr.client}: true}, tr.sink.came(), tr.exporter)
}

// wrote returns what a file exporter wrote, in order of the text.
func wrote(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var requests []string
	for line := range bytes.Lines(text) {
		// The last one may not be whole yet.
		if request, whole := bytes.CutSuffix(line, []byte("\n")); whole {
			requests = append(requests, string(request))
		}
	}
	slices.Sort(requests)
	return requests
}

func count(requests []string, prefix string) (n int) {
	for _, request := range requests {
		if strings.HasPrefix(request, prefix) {
			n++
		}
	}
	return n
}
