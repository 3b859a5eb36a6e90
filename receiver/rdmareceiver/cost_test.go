package rdmareceiver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/rdmaradar/rdmaradar/internal/incident"
)

const (
	costDocument = "../../docs/cost.md"
	costBegin    = "<!-- cost -->\n"
	costEnd      = "<!-- /cost -->"

	secondsOfDay = 24 * 60 * 60
	// costSpans is how many spans are exported a second at the most, by default.
	costSpans = 5
	// bytesOfNumber is what Prometheus keeps a sample in, by the upper figure of its
	// documentation; that a bucket of a native histogram takes as much is assumed.
	bytesOfNumber = 2
)

// load is one request of OTLP: its bytes, as they are and compressed as agent.yaml
// has them. Of metrics it has the series that Prometheus makes of them, and the numbers
// that their samples are of, where a native histogram is one for each bucket.
type load struct {
	bytes, compressed int
	series, numbers   int
}

func loadOf(t *testing.T, request []byte, err error) load {
	t.Helper()
	require.NoError(t, err)
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer encoder.Close()
	return load{bytes: len(request), compressed: len(encoder.EncodeAll(request, nil))}
}

func metricLoad(t *testing.T, metrics pmetric.Metrics) load {
	t.Helper()
	request, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics)
	l := loadOf(t, request, err)
	// Of each resource there is a series target_info besides.
	l.series = metrics.ResourceMetrics().Len()
	l.numbers = l.series
	eachMetric(metrics, func(_ pcommon.Resource, metric pmetric.Metric) {
		eachPoint(metric, func(at dataPoint) {
			series, numbers := seriesOfPoint(at)
			l.series, l.numbers = l.series+series, l.numbers+numbers
		})
	})
	return l
}

// seriesOfPoint is how many series Prometheus makes of a data point, and of how many
// numbers their samples are.
func seriesOfPoint(at dataPoint) (series, numbers int) {
	switch point := at.(type) {
	case pmetric.HistogramDataPoint:
		// One for each bucket, the sum and the count.
		series = point.BucketCounts().Len() + 2
		return series, series
	case pmetric.ExponentialHistogramDataPoint:
		return 1, point.Positive().BucketCounts().Len()
	default:
		return 1, 1
	}
}

// nodeLoad is the third collection of the node: counters have begun by then.
func nodeLoad(t *testing.T, change func(*Config)) load {
	t.Helper()
	node := newCostNode(t, change)
	node.collect()
	node.collect()
	return metricLoad(t, node.collect())
}

// costRecording is what the simulated fleet of internal/e2e sends.
var costRecording = filepath.Join("testdata", "golden", "cost-node.pb.gz")

// Two collections of the node are kept for the simulation of a fleet, in one message:
// from what changed in between it makes the ones that follow.
func TestCostNodeIsRecorded(t *testing.T) {
	node := newCostNode(t, nil)
	node.collect()
	both := node.collect()
	node.collect().ResourceMetrics().MoveAndAppendTo(both.ResourceMetrics())
	if updating() {
		writeRecording(t, both)
	}
	file, err := os.Open(costRecording)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	content, err := io.ReadAll(unzipped)
	require.NoError(t, err)
	want, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(content)
	require.NoError(t, err)
	for i, resource := range both.ResourceMetrics().All() {
		assert.NoError(t, pmetrictest.CompareResourceMetrics(want.ResourceMetrics().At(i), resource), "run the test with UPDATE_GOLDEN=1")
	}
	assert.Equal(t, want.ResourceMetrics().Len(), both.ResourceMetrics().Len())
}

func writeRecording(t *testing.T, metrics pmetric.Metrics) {
	t.Helper()
	content, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics)
	require.NoError(t, err)
	var zipped bytes.Buffer
	to, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	require.NoError(t, err)
	_, err = to.Write(content)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	require.NoError(t, os.WriteFile(costRecording, zipped.Bytes(), 0o644))
}

// deviceLoad is that of the devices alone, without a job.
func deviceLoad(t *testing.T) load {
	t.Helper()
	tree := newCostNode(t, nil).devices
	tree.collect()
	return metricLoad(t, tree.collect())
}

// costTraces is what a node exports of slow requests in a second, at the most.
func costTraces(t *testing.T) ptrace.Traces {
	t.Helper()
	return buildTraces(newCostNode(t, nil).costEvents(t, costSpans), theSurroundings())
}

func costVerdict() plog.Logs {
	return buildLogs(logBatch{verdicts: []verdictEvent{theVerdict(incident.Opened, fullIncident())}}, theSurroundings())
}

// The simulation of a fleet sends these.
func TestCostEventsAreRecorded(t *testing.T) {
	requireGoldenTraces(t, "cost-spans", costTraces(t))
	requireGoldenLogs(t, "cost-verdict", costVerdict())
}

func spanLoad(t *testing.T) load {
	t.Helper()
	request, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(costTraces(t))
	return loadOf(t, request, err)
}

func verdictLoad(t *testing.T) load {
	t.Helper()
	request, err := (&plog.ProtoMarshaler{}).MarshalLogs(costVerdict())
	return loadOf(t, request, err)
}

// The tables of docs/cost.md are what the receiver makes of a node. With UPDATE_GOLDEN
// set they are written, and the test fails so that this cannot go unnoticed.
func TestCostIsDocumented(t *testing.T) {
	text, err := os.ReadFile(costDocument)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), costBegin)
	require.True(t, ok)
	tables, after, ok := strings.Cut(rest, costEnd)
	require.True(t, ok)
	want := costTables(t)
	if updating() {
		require.NoError(t, os.WriteFile(costDocument, []byte(before+costBegin+want+costEnd+after), 0o644))
		t.Error("the tables were written")
	}
	assert.Equal(t, want, tables, "run the test with UPDATE_GOLDEN=1")
}

func costTables(t *testing.T) string {
	t.Helper()
	node := nodeLoad(t, nil)
	return collectionTable(t, node) + "\n" + eventTable(t) + "\n" + fleetTable(t, node)
}

func collectionTable(t *testing.T, node load) string {
	t.Helper()
	rows := []struct {
		what string
		load load
	}{
		{"its eight ports, nothing else", deviceLoad(t)},
		{"with the job, by default", node},
		{"`histogram: explicit`", nodeLoad(t, func(c *Config) { c.Histogram = HistogramExplicit })},
		{"`routes: true`, eight peers for each device", nodeLoad(t, withRoutes)},
		{"`metric_attributes: [rdma.qp.number]`, up to `max_series`", nodeLoad(t, withMetricAttributes(MetricAttributeQPNumber))},
	}
	var out strings.Builder
	out.WriteString("| one node | series | OTLP a collection | compressed | a day, compressed |\n| --- | --- | --- | --- | --- |\n")
	perDay := secondsOfDay / int(defaultConfig().CollectionInterval/time.Second)
	for _, row := range rows {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", row.what,
			grouped(row.load.series), inBytes(row.load.bytes), inBytes(row.load.compressed), inBytes(row.load.compressed*perDay))
	}
	return out.String()
}

func eventTable(t *testing.T) string {
	t.Helper()
	require.Equal(t, costSpans, defaultConfig().MaxExportedPerSecond)
	spans, verdict := spanLoad(t), verdictLoad(t)
	var out strings.Builder
	out.WriteString("| | OTLP each | compressed | a day, compressed |\n| --- | --- | --- | --- |\n")
	fmt.Fprintf(&out, "| span of a slow request | %s | %s | %s at the most, %s spans |\n",
		inBytes(spans.bytes/costSpans), inBytes(spans.compressed/costSpans), inBytes(spans.compressed*secondsOfDay), grouped(costSpans*secondsOfDay))
	perHour := 360 * verdict.compressed
	fmt.Fprintf(&out, "| log record `rdma.verdict` | %s | %s | %s for each hour that an incident is open |\n",
		inBytes(verdict.bytes), inBytes(verdict.compressed), inBytes(perHour))
	return out.String()
}

// fleetTable multiplies: every node is like this one.
func fleetTable(t *testing.T, node load) string {
	t.Helper()
	interval := int(defaultConfig().CollectionInterval / time.Second)
	kept := secondsOfDay / interval * node.numbers * bytesOfNumber
	spans := spanLoad(t).compressed * secondsOfDay
	var out strings.Builder
	out.WriteString("| nodes | series | samples a second | metrics over the network a day | kept by Prometheus a day | spans a day, at the most |\n" +
		"| --- | --- | --- | --- | --- | --- |\n")
	for _, nodes := range []int{1, 100, 1000} {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", grouped(nodes), grouped(nodes*node.series), roundly(nodes*node.series/interval),
			inBytes(nodes*node.compressed*secondsOfDay/interval), inBytes(nodes*kept), inBytes(nodes*spans))
	}
	return out.String()
}

// roundly writes a number with two digits that count, and commas.
func roundly(n int) string {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return grouped((n + unit/2) / unit * unit)
}

func grouped(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// inBytes writes a size with two digits that count: what is beyond them depends on
// the compressor.
func inBytes(n int) string {
	size, unit := float64(n), "B"
	for _, larger := range []string{"KB", "MB", "GB", "TB"} {
		if size < 1000 {
			break
		}
		size, unit = size/1000, larger
	}
	if size < 10 {
		return fmt.Sprintf("%.1f %s", size, unit)
	}
	return fmt.Sprintf("%s %s", roundly(int(size+0.5)), unit)
}
