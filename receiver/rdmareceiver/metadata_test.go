package rdmareceiver

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"gopkg.in/yaml.v3"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/incident"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// declaration is what metadata.yaml says.
type declaration struct {
	ResourceAttributes map[string]any `yaml:"resource_attributes"`
	Attributes         map[string]struct {
		Type string   `yaml:"type"`
		Enum []string `yaml:"enum"`
	} `yaml:"attributes"`
	Metrics map[string]struct {
		Description string   `yaml:"description"`
		Unit        string   `yaml:"unit"`
		Attributes  []string `yaml:"attributes"`
		Sum         *struct {
			Monotonic bool `yaml:"monotonic"`
		} `yaml:"sum"`
		Gauge *struct{} `yaml:"gauge"`
	} `yaml:"metrics"`
	Events map[string]struct {
		Attributes []string `yaml:"attributes"`
	} `yaml:"events"`
	Telemetry struct {
		Metrics map[string]struct {
			Attributes []string `yaml:"attributes"`
		} `yaml:"metrics"`
	} `yaml:"telemetry"`
}

func declared(t *testing.T) declaration {
	t.Helper()
	text, err := os.ReadFile("metadata.yaml")
	require.NoError(t, err)
	var d declaration
	require.NoError(t, yaml.Unmarshal(text, &d))
	return d
}

// kindOf is the kind of a metric in the words of metadata.yaml.
func kindOf(metric pmetric.Metric) string {
	switch {
	case metric.Type() == pmetric.MetricTypeGauge:
		return "gauge"
	case metric.Type() == pmetric.MetricTypeSum && metric.Sum().IsMonotonic():
		return "monotonic sum"
	case metric.Type() == pmetric.MetricTypeSum:
		return "sum"
	default:
		return "histogram"
	}
}

// everyMetric emits every metric, with every attribute.
func everyMetric(t *testing.T) pmetric.Metrics {
	t.Helper()
	snapshot := fullSnapshot()
	snapshot.Queues = append(snapshot.Queues, routedSnapshot(100).Queues...)
	b := newBench(t, theHost().processes, withRoutes)
	b.aggregator.foundSince(nil, map[incident.Key]int{{Cause: "pcie", Device: "mlx5_0"}: 1})
	metrics := b.collect(snapshot)
	sample := fullSample()
	newDeviceEmitter(defaultConfig(), receivertest.NewNopSettings(metadata.Type), theSurroundings()).emit(metrics, &sample, map[string]uint64{})
	return metrics
}

// What dashboards and rules may ask for: internal/e2e hands it to a Prometheus.
func TestEveryMetricGolden(t *testing.T) {
	requireGoldenMetrics(t, "every-metric", everyMetric(t), pmetrictest.IgnoreMetricDataPointsOrder())
}

func TestEmittedMetricsAreThoseDeclared(t *testing.T) {
	d := declared(t)
	documentation, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	emitted := map[string]map[string]bool{}
	eachMetric(everyMetric(t), func(_ pcommon.Resource, metric pmetric.Metric) {
		names := emitted[metric.Name()]
		if names == nil {
			names = map[string]bool{}
			emitted[metric.Name()] = names
		}
		eachPoint(metric, func(at dataPoint) {
			for name, value := range at.Attributes().All() {
				names[name] = true
				assertDeclaredValue(t, d, name, value)
			}
		})
		if kindOf(metric) == "histogram" {
			return
		}
		m, ok := d.Metrics[metric.Name()]
		require.True(t, ok, "%s is not in metadata.yaml", metric.Name())
		assert.Equal(t, m.Unit, metric.Unit(), metric.Name())
		assert.Equal(t, m.Description, metric.Description(), metric.Name())
		want := "gauge"
		if m.Sum != nil {
			want = "sum"
			if m.Sum.Monotonic {
				want = "monotonic sum"
			}
		}
		assert.Equal(t, want, kindOf(metric), metric.Name())
		assert.Contains(t, string(documentation), "\n### "+metric.Name()+"\n")
	})
	for name, m := range d.Metrics {
		assertSameNames(t, name, m.Attributes, emitted[name])
		delete(emitted, name)
	}
	for _, h := range histogramMetrics() {
		assertSameNames(t, h.Name, h.Attributes, emitted[h.Name])
		assert.Contains(t, string(readme), "| `"+h.Name+"` | "+h.Unit+" |", "README.md describes the histograms")
		for _, a := range h.Attributes {
			assert.Contains(t, d.Attributes, a)
		}
		delete(emitted, h.Name)
	}
	assert.Empty(t, emitted, "emitted and declared nowhere")
}

func assertSameNames(t *testing.T, of string, want []string, got map[string]bool) {
	t.Helper()
	names := []string{}
	for name := range got {
		names = append(names, name)
	}
	assert.ElementsMatch(t, want, names, of)
}

// assertDeclaredValue holds a value against the type and the values declared.
func assertDeclaredValue(t *testing.T, d declaration, name string, value pcommon.Value) {
	t.Helper()
	a, ok := d.Attributes[name]
	if !assert.True(t, ok, "the attribute %s is not in metadata.yaml", name) {
		return
	}
	types := map[string]pcommon.ValueType{
		"string": pcommon.ValueTypeStr, "int": pcommon.ValueTypeInt, "double": pcommon.ValueTypeDouble,
		"bool": pcommon.ValueTypeBool, "slice": pcommon.ValueTypeSlice,
	}
	assert.Equal(t, types[a.Type], value.Type(), name)
	if len(a.Enum) > 0 {
		assert.Contains(t, a.Enum, value.Str(), name)
	}
}

// Each event and span has attributes that are declared, and all that are
// declared come out when everything is known.
func TestEmittedEventsAreThoseDeclared(t *testing.T) {
	d := declared(t)
	failed := fullCompletion()
	failed.Status, failed.VendorError = 12, 0x81
	failed.Path.RemoteLID = 0x2b
	stuck, ofQueue := theStuck(), fatalInKernel()
	stuck.Path.RemoteLID = 0x2b
	ofQueue.Process = trainer
	withoutNumber := theStuck()
	withoutNumber.HasCQNumber = false
	inOne := fullCompletion()
	inOne.HasCQNumber = false
	inOne.Known = 1<<verbs.StageSubmit | 1<<verbs.StageCompletion
	inOne.Stages = [verbs.NumStages]time.Duration{verbs.StageSubmit: time.Microsecond, verbs.StageCompletion: time.Millisecond}
	events := theEvents(t, false, failed, inOne)
	events[0].verdict.Confidence = diagnose.Likely
	logs := buildLogs(logBatch{slow: events, stuck: []stuckEvent{theStuckEvent(stuck), theStuckEvent(withoutNumber)}, async: []asyncEvent{
		theAsyncEvent(portDown()), theAsyncEvent(ofQueue),
	}, verdicts: []verdictEvent{theVerdict(incident.Opened, fullIncident())}}, theSurroundings())
	emitted := map[string]map[string]bool{}
	for i := range logs.ResourceLogs().Len() {
		rl := logs.ResourceLogs().At(i)
		for name := range rl.Resource().Attributes().All() {
			assert.Contains(t, d.ResourceAttributes, name)
		}
		records := rl.ScopeLogs().At(0).LogRecords()
		for j := range records.Len() {
			record := records.At(j)
			if emitted[record.EventName()] == nil {
				emitted[record.EventName()] = map[string]bool{}
			}
			for name, value := range record.Attributes().All() {
				emitted[record.EventName()][name] = true
				assertDeclaredValue(t, d, name, value)
			}
		}
	}
	for name, e := range d.Events {
		assertSameNames(t, name, e.Attributes, emitted[name])
		delete(emitted, name)
	}
	assert.Empty(t, emitted, "emitted and declared nowhere")

	spans := buildTraces(events, theSurroundings()).ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	onSpans := map[string]bool{}
	for i := range spans.Len() {
		for name := range spans.At(i).Attributes().All() {
			onSpans[name] = true
		}
	}
	assertSameNames(t, "spans have what the event has", d.Events[eventSlow].Attributes, onSpans)
}

// The values of enumerations are those of the vocabulary.
func TestEnumerationsFollowTheVocabulary(t *testing.T) {
	d := declared(t)
	var stages []string
	for stage := range verbs.NumStages {
		stages = append(stages, stage.String())
	}
	assert.ElementsMatch(t, stages, d.Attributes["rdma.wqe.stage"].Enum)
	var states []string
	for _, state := range []verbs.QueueState{verbs.QueueSynced, verbs.QueueUnsynced, verbs.QueueUntracked} {
		states = append(states, state.String())
	}
	assert.ElementsMatch(t, states, d.Attributes["rdma.queue.state"].Enum)
}

// Naming rules of the semantic conventions: lower case, no unit, no total.
func TestNames(t *testing.T) {
	d := declared(t)
	var names []string
	for name := range d.Metrics {
		names = append(names, name)
	}
	for _, h := range histogramMetrics() {
		names = append(names, h.Name)
	}
	for _, name := range names {
		assert.True(t, strings.HasPrefix(name, "rdma."), name)
		parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '_' })
		for _, unit := range []string{"total", "seconds", "bytes", "count"} {
			assert.False(t, slices.Contains(parts, unit), name)
		}
		assert.Equal(t, strings.ToLower(name), name)
	}
}

// The units of the table of counters are those of the metrics.
func TestUnitsOfCountersAreThoseDeclared(t *testing.T) {
	d := declared(t)
	for _, c := range fabric.Counters() {
		m, ok := d.Metrics[c.Metric]
		require.True(t, ok, "%s is not in metadata.yaml", c.Metric)
		assert.Equal(t, m.Unit, c.Unit, "%s becomes %s", c.Name, c.Metric)
		assert.Equal(t, c.Momentary, m.Gauge != nil, "%s becomes %s", c.Name, c.Metric)
		assert.Equal(t, c.Direction != "", slices.Contains(m.Attributes, attributeDirection), "%s becomes %s", c.Name, c.Metric)
	}
}
