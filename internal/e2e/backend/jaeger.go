package backend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/launch"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// Jaeger is a running Jaeger that keeps traces in memory.
type Jaeger struct {
	*launch.Child
	// URL is that of its API, without a slash at the end. GRPC and HTTP are the
	// endpoints for the exporters otlp_grpc and otlp_http.
	URL, GRPC, HTTP string

	directory string
}

// jaegerConfig listens nowhere but on the ports given. Left alone, Jaeger takes some
// fifteen ports, of which its API is on all interfaces, and sends spans of its own to
// localhost:4317.
const jaegerConfig = `service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines: {traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}}
  telemetry: {metrics: {level: none}}
extensions:
  jaeger_storage: {backends: {memory: {memory: {max_traces: 100000}}}}
  jaeger_query:
    storage: {traces: memory}
    enable_tracing: false
    http: {endpoint: "127.0.0.1:%d"}
    grpc: {endpoint: "127.0.0.1:%d"}
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:%d"}, http: {endpoint: "127.0.0.1:%d"}}}
exporters:
  jaeger_storage_exporter: {trace_storage: memory}
`

// StartJaeger runs Jaeger until the end of the test. The test must keep its thread.
func StartJaeger(t *testing.T) *Jaeger {
	t.Helper()
	api, grpc, http := testbed.FreePort(t), testbed.FreePort(t), testbed.FreePort(t)
	j := &Jaeger{
		URL:       fmt.Sprintf("http://127.0.0.1:%d", api),
		GRPC:      fmt.Sprintf("127.0.0.1:%d", grpc),
		HTTP:      fmt.Sprintf("http://127.0.0.1:%d", http),
		directory: t.TempDir(),
	}
	text := fmt.Sprintf(jaegerConfig, api, testbed.FreePort(t), grpc, http)
	require.NoError(t, os.WriteFile(j.config(), []byte(text), 0o644))
	j.Start(t)
	return j
}

func (j *Jaeger) config() string { return filepath.Join(j.directory, "jaeger.yaml") }

// Start runs Jaeger again where it was before, after its end: with nothing stored.
func (j *Jaeger) Start(t *testing.T) {
	t.Helper()
	j.Child = start(t, j.directory, "jaeger", j.URL+"/api/services", "--config", j.config())
}

// Trace is a trace as the API of Jaeger tells it.
type Trace struct {
	ID        string             `json:"traceID"`
	Spans     []Span             `json:"spans"`
	Processes map[string]Process `json:"processes"`
}

// Span is one of a trace. Start is in microseconds since the Unix epoch, Duration in
// microseconds. Process is a key of Trace.Processes.
type Span struct {
	TraceID    string      `json:"traceID"`
	ID         string      `json:"spanID"`
	Name       string      `json:"operationName"`
	References []Reference `json:"references"`
	Start      int64       `json:"startTime"`
	Duration   int64       `json:"duration"`
	Tags       []Tag       `json:"tags"`
	Process    string      `json:"processID"`
}

// Reference is to a parent (CHILD_OF) or to what a link names (FOLLOWS_FROM).
type Reference struct {
	Type    string `json:"refType"`
	TraceID string `json:"traceID"`
	SpanID  string `json:"spanID"`
}

// Tag is an attribute.
type Tag struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// Process is what sent a span: a resource.
type Process struct {
	Service string `json:"serviceName"`
	Tags    []Tag  `json:"tags"`
}

// Traces returns the traces of a service, at most the number given.
func (j *Jaeger) Traces(t *testing.T, service string, limit int) []Trace {
	t.Helper()
	var traces []Trace
	j.get(t, fmt.Sprintf("/api/traces?service=%s&limit=%d", url.QueryEscape(service), limit), &traces)
	return traces
}

// Trace returns the trace with that id in hexadecimal, false when there is none.
func (j *Jaeger) Trace(t *testing.T, id string) (Trace, bool) {
	t.Helper()
	var traces []Trace
	if !j.get(t, "/api/traces/"+id, &traces) || len(traces) == 0 {
		return Trace{}, false
	}
	return traces[0], true
}

// Services returns the services that there are spans of.
func (j *Jaeger) Services(t *testing.T) []string {
	t.Helper()
	var services []string
	j.get(t, "/api/services", &services)
	return services
}

// get reads an answer into data, and is false where there is none.
func (j *Jaeger) get(t *testing.T, path string, data any) bool {
	t.Helper()
	response, err := http.Get(j.URL + path)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNotFound {
		return false
	}
	require.Equal(t, http.StatusOK, response.StatusCode, path)
	answer := struct {
		Data any `json:"data"`
	}{data}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return true
}

// ReferencesOf returns the references of one type.
func (s *Span) ReferencesOf(kind string) []Reference {
	var found []Reference
	for _, reference := range s.References {
		if reference.Type == kind {
			found = append(found, reference)
		}
	}
	return found
}

// Number returns an attribute that is a number, 0 where there is none.
func (s *Span) Number(key string) int {
	for _, tag := range s.Tags {
		if number, ok := tag.Value.(float64); ok && tag.Key == key {
			return int(number)
		}
	}
	return 0
}
