//go:build backends

package dashboards

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rdmaradar/rdmaradar/internal/e2e/backend"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// names are the labels of each metric, under the names that Prometheus gives them.
type names map[string]map[string]bool

func (n names) add(metric string, labels ...string) {
	if n[metric] == nil {
		n[metric] = map[string]bool{"__name__": true}
	}
	for _, label := range labels {
		n[metric][label] = true
	}
}

// emitted asks Prometheus what it made of every metric that the receiver can emit,
// and adds what the receiver tells of itself.
func emitted(t *testing.T, prometheus *backend.Prometheus) names {
	t.Helper()
	require.NoError(t, prometheus.Take(t.Context(), backend.EveryMetric(t)))
	all := names(prometheus.Labels(t))
	require.NotEmpty(t, all)
	addOwn(t, all)
	return all
}

// addOwn adds what metadata.yaml has the receiver tell of itself; the collector puts
// its prefix before it.
func addOwn(t *testing.T, to names) {
	t.Helper()
	text, err := os.ReadFile("../../../receiver/rdmareceiver/metadata.yaml")
	require.NoError(t, err)
	var declared struct {
		Telemetry struct {
			Metrics map[string]struct {
				Attributes []string
				Sum        struct{ Monotonic bool }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &declared))
	for name, metric := range declared.Telemetry.Metrics {
		name = "otelcol_" + name
		if metric.Sum.Monotonic {
			name += "_total"
		}
		to.add(name, "job", "instance", "host_name")
		for _, attribute := range metric.Attributes {
			to.add(name, strings.ReplaceAll(attribute, ".", "_"))
		}
	}
}

// rule is one of a file of rules.
type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func rulesOf(t *testing.T, path string) []rule {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []rule } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// used are the names in an expression: its selectors, and the labels by which it
// groups and matches.
type used struct {
	selectors []selector
	grouping  []string
}

type selector struct {
	Name     string
	Matchers []struct{ Name string }
	// counted is true of what rate or increase is taken of.
	counted bool
}

// rises is whether it is a counter or a histogram, by its name.
func (s *selector) rises() bool {
	return strings.HasSuffix(s.Name, "_total") || s.Name == "rdma_wqe_duration_seconds"
}

// parse has Prometheus take an expression apart.
func parse(t *testing.T, prometheus *backend.Prometheus, expression string) used {
	t.Helper()
	response, err := http.Get(prometheus.URL + "/api/v1/parse_query?query=" + url.QueryEscape(expression))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	require.Equal(t, "success", answer.Status, "%s: %s", expression, answer.Error)
	var found used
	found.walk(t, answer.Data)
	require.NotEmpty(t, found.selectors, expression)
	return found
}

// walk takes down what a node of the syntax tree and those below it name.
func (u *used) walk(t *testing.T, node json.RawMessage) {
	t.Helper()
	var list []json.RawMessage
	if json.Unmarshal(node, &list) == nil {
		for _, below := range list {
			u.walk(t, below)
		}
		return
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(node, &object) != nil || object == nil {
		return
	}
	var of struct {
		Type     string
		Func     struct{ Name string }
		Grouping []string
		Matching *struct{ Labels, Include []string }
	}
	require.NoError(t, json.Unmarshal(node, &of))
	u.grouping = append(u.grouping, of.Grouping...)
	if of.Matching != nil {
		u.grouping = append(append(u.grouping, of.Matching.Labels...), of.Matching.Include...)
	}
	if of.Type == "vectorSelector" || of.Type == "matrixSelector" {
		var s selector
		require.NoError(t, json.Unmarshal(node, &s))
		u.selectors = append(u.selectors, s)
	}
	before := len(u.selectors)
	for _, key := range []string{"expr", "args", "lhs", "rhs", "param"} {
		if below, ok := object[key]; ok {
			u.walk(t, below)
		}
	}
	if of.Func.Name == "rate" || of.Func.Name == "increase" {
		for i := range u.selectors[before:] {
			u.selectors[before+i].counted = true
		}
	}
}

// check holds what an expression uses against what there is, and returns the labels
// that its selectors have.
func (n names) check(t *testing.T, where string, of used) map[string]bool {
	t.Helper()
	labels := map[string]bool{}
	for _, s := range of.selectors {
		has, ok := n[s.Name]
		if !assert.True(t, ok, "%s: nothing is called %s", where, s.Name) {
			continue
		}
		maps.Copy(labels, has)
		counts := !s.counted || s.rises()
		for _, m := range s.Matchers {
			assert.True(t, has[m.Name], "%s: %s has no label %s", where, s.Name, m.Name)
			// What is outstanding falls, what became of the rest does not.
			counts = counts || s.Name == "otelcol_rdma_wqes" && m.Name == "fate"
		}
		assert.True(t, counts, "%s: %s falls too, so that rate and increase make nothing of it", where, s.Name)
	}
	for _, label := range of.grouping {
		assert.True(t, labels[label], "%s: nothing in it has the label %s", where, label)
	}
	return labels
}

var (
	inAnnotation = regexp.MustCompile(`\$labels\.(\w+)`)
	inLegend     = regexp.MustCompile(`{{(\w+)}}`)
	queried      = regexp.MustCompile(`query "([^"]+)"`)
)

func assertLabels(t *testing.T, where, text string, labels map[string]bool, of *regexp.Regexp) {
	t.Helper()
	for _, match := range of.FindAllStringSubmatch(text, -1) {
		assert.True(t, labels[match[1]], "%s: %q names the label %s, which nothing in it has", where, text, match[1])
	}
}

// What rules and dashboards ask for is what the receiver emits, under the names that
// Prometheus gives it.
func TestNamesAreThoseThatAreEmitted(t *testing.T) {
	testbed.KeepThread(t)
	prometheus := backend.StartPrometheus(t)
	known := emitted(t, prometheus)
	known.addRecorded(t, prometheus)
	known.checkAlerts(t, prometheus)
	for uid, d := range shipped(t) {
		for _, p := range d.Panels {
			where := uid + ": " + p.Title
			for _, of := range p.Targets {
				labels := known.check(t, where, parse(t, prometheus, query(of.Expr, everything)))
				assertLabels(t, where, of.LegendFormat, labels, inLegend)
			}
		}
	}
}

// addRecorded adds what is recorded, each after what it is made of.
func (n names) addRecorded(t *testing.T, prometheus *backend.Prometheus) {
	t.Helper()
	for _, r := range rulesOf(t, recording) {
		of := parse(t, prometheus, r.Expr)
		// One may carry itself on.
		of.selectors = slices.DeleteFunc(of.selectors, func(s selector) bool { return s.Name == r.Record })
		labels := n.check(t, r.Record, of)
		level, _, _ := strings.Cut(r.Record, ":")
		assert.Contains(t, []string{"job_rail_host", "job_rail", "host", "host_device", "host_device_cause", "host_device_port", "fleet"}, level)
		n.add(r.Record, slices.Collect(maps.Keys(labels))...)
	}
}

func (n names) checkAlerts(t *testing.T, prometheus *backend.Prometheus) {
	t.Helper()
	uids := shipped(t)
	n.add("ALERTS", "alertname", "alertstate")
	for _, r := range rulesOf(t, alerts) {
		labels := n.check(t, r.Alert, parse(t, prometheus, r.Expr))
		n.add("ALERTS", slices.Collect(maps.Keys(labels))...)
		for _, text := range r.Annotations {
			assertLabels(t, r.Alert, text, labels, inAnnotation)
			for _, match := range queried.FindAllStringSubmatch(text, -1) {
				n.check(t, r.Alert, parse(t, prometheus, match[1]))
			}
		}
		if uid, ok := r.Annotations["dashboard"]; ok {
			assert.Contains(t, uids, uid, "%s names a dashboard", r.Alert)
		}
		assert.Contains(t, []string{"page", "ticket"}, r.Labels["severity"], r.Alert)
		assert.Contains(t, []string{"node", "fleet"}, r.Labels["scope"], r.Alert)
	}
}
