package backend

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

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

// StartPrometheus runs Prometheus with the settings that ship, but with these files of
// rules and without an Alertmanager, until the end of the test. The test must keep its
// thread.
func StartPrometheus(t *testing.T, rules ...string) *Prometheus {
	t.Helper()
	directory := t.TempDir()
	config := filepath.Join(directory, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, settings(t, rules), 0o644))

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

// settings are those of config/prometheus/prometheus.yml, with files of rules that are
// evaluated once a second, and without an Alertmanager.
func settings(t *testing.T, rules []string) []byte {
	t.Helper()
	text, err := os.ReadFile(testbed.File(t, "config/prometheus/prometheus.yml"))
	require.NoError(t, err)
	var shipped map[string]any
	require.NoError(t, yaml.Unmarshal(text, &shipped))
	global, is := shipped["global"].(map[string]any)
	require.True(t, is, "prometheus.yml has no section global")
	global["evaluation_interval"] = "1s"
	delete(shipped, "alerting")
	files := make([]string, 0, len(rules))
	for _, path := range rules {
		absolute, err := filepath.Abs(path)
		require.NoError(t, err)
		files = append(files, absolute)
	}
	shipped["rule_files"] = files
	changed, err := yaml.Marshal(shipped)
	require.NoError(t, err)
	return changed
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
