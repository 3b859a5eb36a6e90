//go:build backends

package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// device is the simulated one, the only one that the collector takes. What a job does
// on the other one comes out nowhere.
const (
	device = "backend0"
	other  = "backend1"
)

// everything reports every completion, whatever that costs.
const everything = `receivers:
  rdma:
    root_path: %s
    threshold: 1us
    collection_interval: 1s
    max_exported_per_second: 1000
    max_thread_cpu_ratio: 1
    max_agent_cpu_cores: 16
    devices: {include: [{strict: %s}]}
    error_mode: propagate
    %s
`

// own lets the collector tell how it fares.
const own = `  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: localhost, port: %d}}}}]
`

// agent is a collector of everything beside a host that is made up.
type agent struct {
	t *testing.T
	// root is the host, directory that of the collector.
	root, directory string
	// keys is one more line for the receiver, rest what follows it; {dir} stands
	// for the directory. The section "service" is the last.
	keys, rest string
	port       int

	*testbed.Collector
}

// newAgent has a host and a directory, and is not started.
func newAgent(t *testing.T, rest string) *agent {
	t.Helper()
	testbed.RequireRoot(t)
	testbed.KeepThread(t)
	return &agent{t: t, root: testbed.Node(t), directory: t.TempDir(), rest: rest, port: testbed.FreePort(t)}
}

// start runs the collector, also once more where it was before.
func (a *agent) start() {
	a.t.Helper()
	config := fmt.Sprintf(everything, a.root, device, a.keys) + inDirectory(a.rest, a.directory) + fmt.Sprintf(own, a.port)
	a.Collector = testbed.StartCollector(a.t, a.directory, config)
	a.introduce()
}

// introduce lets the collector know the library of the simulated provider: one is probed
// when a program first uses it, and jobs are to be followed from their first request.
func (a *agent) introduce() {
	a.t.Helper()
	j := startJob(a.t, a.root, nil, "rate", "--rate", "1000", "--seconds", "0", "--device", other)
	for _, function := range []string{"ibv_create_qp", "post_send", "poll_cq"} {
		waitUntil(a.t, function+" is probed", func() bool { return a.own("otelcol_rdma_probes", "function", function) > 0 })
	}
	j.Stop()
	j.end()
}

// end stops the collector, which delivers what it still has.
func (a *agent) end() {
	a.t.Helper()
	a.Stop()
	require.NoError(a.t, a.Wait())
}

// file is what the collector's file exporter wrote.
func (a *agent) file() string { return filepath.Join(a.directory, "out.jsonl") }

// own returns the sum of one of the collector's own metrics over the series with that
// value of a label.
func (a *agent) own(name, label, value string) float64 {
	a.t.Helper()
	return a.ownOf(name, map[string]string{label: value})
}

// ownOf is own with several labels.
func (a *agent) ownOf(name string, labels map[string]string) float64 {
	a.t.Helper()
	response, err := http.Get(fmt.Sprintf("http://localhost:%d/metrics", a.port))
	require.NoError(a.t, err)
	defer func() { _ = response.Body.Close() }()
	all, err := otlp.ReadPrometheus(response.Body)
	require.NoError(a.t, err)
	return all.Total(otlp.Match{Metric: name, Attributes: labels})
}
