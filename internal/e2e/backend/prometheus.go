package backend

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/launch"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// Prometheus is a running Prometheus that takes OTLP, scrapes nothing, and evaluates
// rules once a second. Its administrative API is on.
type Prometheus struct {
	*launch.Child
	// URL is that of its API and of its page, without a slash at the end. OTLP is
	// the endpoint for the exporter otlp_http.
	URL, OTLP string
	// Data is the directory that it stores in.
	Data string
	// API asks it anything.
	API v1.API
}

// prometheusConfig is as config/prometheus/prometheus.yml.
const prometheusConfig = `global: {evaluation_interval: 1s}
otlp: {promote_resource_attributes: [host.name, slurm.job.id]}
rule_files: [%s]
`

// StartPrometheus runs Prometheus with files of rules until the end of the test. The
// test must keep its thread.
func StartPrometheus(t *testing.T, rules ...string) *Prometheus {
	t.Helper()
	directory := t.TempDir()
	config := filepath.Join(directory, "prometheus.yml")
	quoted := make([]string, 0, len(rules))
	for _, path := range rules {
		absolute, err := filepath.Abs(path)
		require.NoError(t, err)
		quoted = append(quoted, fmt.Sprintf("%q", absolute))
	}
	text := fmt.Sprintf(prometheusConfig, strings.Join(quoted, ", "))
	require.NoError(t, os.WriteFile(config, []byte(text), 0o644))

	address := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))
	p := &Prometheus{URL: "http://" + address, OTLP: "http://" + address + "/api/v1/otlp", Data: filepath.Join(directory, "data")}
	p.Child = start(t, directory, "prometheus", p.URL+"/-/ready",
		"--config.file="+config, "--storage.tsdb.path="+p.Data,
		"--web.listen-address="+address, "--web.enable-otlp-receiver",
		"--web.enable-remote-write-receiver", "--web.enable-admin-api", "--enable-feature=exemplar-storage")
	client, err := api.NewClient(api.Config{Address: p.URL})
	require.NoError(t, err)
	p.API = v1.NewAPI(client)
	return p
}

// Query evaluates an expression now that gives a vector.
func (p *Prometheus) Query(t *testing.T, expression string) model.Vector {
	t.Helper()
	value, warnings, err := p.API.Query(t.Context(), expression, time.Now())
	require.NoError(t, err, expression)
	require.Empty(t, warnings, expression)
	vector, ok := value.(model.Vector)
	require.True(t, ok, "%s gives a %T, not a vector", expression, value)
	return vector
}
