package otlp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func metricsLine(t *testing.T, service string, completions int64, counts []uint64) string {
	t.Helper()
	m := pmetric.NewMetrics()
	rm := m.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", service)
	sm := rm.ScopeMetrics().AppendEmpty()
	sum := sm.Metrics().AppendEmpty()
	sum.SetName("rdma.wqe.completions")
	dp := sum.SetEmptySum().DataPoints().AppendEmpty()
	dp.SetIntValue(completions)
	dp.Attributes().PutStr("rdma.device.name", "rxa")
	h := sm.Metrics().AppendEmpty()
	h.SetName("rdma.wqe.duration")
	hp := h.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
	hp.SetScale(3)
	hp.Positive().SetOffset(-80) // 2^-10 s
	hp.Positive().BucketCounts().FromRaw(counts)
	total := uint64(0)
	for _, c := range counts {
		total += c
	}
	hp.SetCount(total)
	hp.SetMin(0.001)
	hp.SetSum(0.5)
	hp.SetMax(0.0012)
	data, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMetricsTakesTheLatestOfEachSeries(t *testing.T) {
	path := write(t, metricsLine(t, "a", 3, []uint64{1})+metricsLine(t, "b", 100, []uint64{7})+
		metricsLine(t, "a", 5, []uint64{3, 1})+`{"resourceMetrics":[{"torn`)
	tail := NewTail(path)
	all, err := tail.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	match := Match{Service: "a", Metric: "rdma.wqe.completions"}
	if got := all.Total(match); got != 5 {
		t.Errorf("total of a = %v, want 5", got)
	}
	if got := all.Total(Match{Metric: "rdma.wqe.completions"}); got != 105 {
		t.Errorf("total of all = %v, want 105", got)
	}
	match.Attributes = map[string]string{"rdma.device.name": "rxb"}
	if got := all.Select(match); len(got) != 0 {
		t.Errorf("device rxb has %v", got)
	}
	match.Attributes = map[string]string{"rdma.device.name": "rxa", "error.type": ""}
	if got := all.Select(match); len(got) != 2 {
		t.Errorf("rxa without error.type has %v", got)
	}
	h := all.Histogram(Match{Service: "a", Metric: "rdma.wqe.duration"})
	if h.Count != 4 || len(h.Buckets) != 2 {
		t.Fatalf("histogram %+v", h)
	}
	if b := h.Quantile(0.5); b.Lower != 976562*time.Nanosecond || b.Upper < b.Lower*1090/1000 || b.Upper > b.Lower*1091/1000 {
		t.Errorf("p50 bucket %+v, want the eighth of an octave over 2^-10 s", b)
	}
	if b := h.Quantile(0.99); b.Count != 1 {
		t.Errorf("p99 bucket %+v, want the one of 1", b)
	}
	if again, err := tail.Metrics(); err != nil || len(again) != 0 {
		t.Errorf("read twice: %v, %v", again, err)
	}
	if latest := all.Latest(); len(latest) != 4 || latest.Total(Match{Metric: "rdma.wqe.completions"}) != 105 {
		t.Errorf("latest %v", latest)
	}
	earlier := Histogram{Count: 1, Sum: 100 * time.Millisecond, Buckets: []Bucket{{Upper: h.Buckets[0].Upper, Count: 1}, {Upper: 7, Count: 0}}}
	if since := h.Since(&earlier); since.Count != 3 || since.Sum != 400*time.Millisecond || since.Buckets[0].Count != 2 || len(since.Buckets) != 2 {
		t.Errorf("since %+v", since)
	}
	merged := all.Histogram(Match{Metric: "rdma.wqe.duration"})
	if merged.Count != 11 || merged.Buckets[0].Count != 10 || merged.Min != time.Millisecond || merged.Sum != time.Second {
		t.Errorf("merged %+v", merged)
	}
}

func TestReadMetricsReportsBadLines(t *testing.T) {
	_, err := NewTail(write(t, "\n{\"resourceMetrics\":[}\n")).Metrics()
	if err == nil || !strings.Contains(err.Error(), "line at 1") {
		t.Fatalf("err = %v", err)
	}
	if all, err := NewTail(filepath.Join(t.TempDir(), "absent")).Metrics(); err != nil || len(all) != 0 {
		t.Fatalf("absent file: %v, %v", all, err)
	}
}

// TestTailWaitsForTheEndOfALine: a line is read when it is whole, and once.
func TestTailWaitsForTheEndOfALine(t *testing.T) {
	line := metricsLine(t, "a", 3, []uint64{1})
	path := write(t, line[:20])
	tail := NewTail(path)
	if all, err := tail.Metrics(); err != nil || len(all) != 0 {
		t.Fatalf("half a line: %v, %v", all, err)
	}
	if err := os.WriteFile(path, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	if all, err := tail.Metrics(); err != nil || len(all) != 2 {
		t.Fatalf("the whole line: %v, %v", all, err)
	}
}

func TestReadSpans(t *testing.T) {
	traces := ptrace.NewTraces()
	rs := traces.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "ib_read_lat")
	s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetName("rdma_read rxa")
	s.SetStartTimestamp(pcommon.Timestamp(1_000_000_000))
	s.SetEndTimestamp(pcommon.Timestamp(1_050_000_000))
	s.Attributes().PutInt("rdma.qp.number", 17)
	data, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
	if err != nil {
		t.Fatal(err)
	}
	spans, err := NewTail(write(t, string(data)+"\n")).Spans()
	if err != nil || len(spans) != 1 {
		t.Fatalf("%v, %v", spans, err)
	}
	if got := spans[0]; got.Duration() != 50*time.Millisecond || got.Service != "ib_read_lat" || got.Attributes["rdma.qp.number"] != "17" || got.Failed {
		t.Errorf("span %+v", got)
	}
}

func TestReadRecords(t *testing.T) {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "ib_write_bw")
	r := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	r.SetEventName("rdma.wqe.stuck")
	r.Attributes().PutStr("rdma.device.name", "rxa")
	data, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
	if err != nil {
		t.Fatal(err)
	}
	records, err := NewTail(write(t, string(data)+"\n")).Records()
	if err != nil || len(records) != 1 || records[0].Event != "rdma.wqe.stuck" || records[0].Service != "ib_write_bw" || records[0].Attributes["rdma.device.name"] != "rxa" {
		t.Fatalf("%+v, %v", records, err)
	}
}

func TestReadPrometheus(t *testing.T) {
	const text = `# HELP otelcol_rdma_wqes Work requests
# TYPE otelcol_rdma_wqes gauge
otelcol_rdma_wqes{fate="delivered",reason="",path="a\"b}c"} 12
otelcol_rdma_wqes{fate="retired"} 3e+01
otelcol_up 1
`
	all, err := ReadPrometheus(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := all.Total(Match{Metric: "otelcol_rdma_wqes"}); got != 42 {
		t.Errorf("total = %v, want 42", got)
	}
	if got := all.Total(Match{Metric: "otelcol_rdma_wqes", Attributes: map[string]string{"fate": "retired"}}); got != 30 {
		t.Errorf("retired = %v, want 30", got)
	}
	if _, err := ReadPrometheus(strings.NewReader("{} x\n")); err == nil {
		t.Error("no error")
	}
}

func FuzzReadPrometheus(f *testing.F) {
	f.Add("a{b=\"c\"} 1\n")
	f.Fuzz(func(_ *testing.T, s string) { _, _ = ReadPrometheus(strings.NewReader(s)) })
}
