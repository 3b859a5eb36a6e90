package suite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

// The settings of the collectors under test. Emulation adds milliseconds of
// scheduling to every request, so the threshold lies between that noise and the
// 50 ms that the tests inject. What is seen is compared with what was done, so all
// of it has to be observed, whatever a probe costs on an emulated CPU.
const (
	threshold = 20 * time.Millisecond
	injected  = 50 * time.Millisecond
	interval  = time.Second
)

const configuration = `
receivers:
  rdma:
    threshold: 20ms
    max_thread_cpu_ratio: 1
    max_agent_cpu_cores: 16
    collection_interval: 1s
    routes: true
    error_mode: ERRORS
SETTINGSexporters:
  file/metrics: {path: DIR/metrics.jsonl, flush_interval: 100ms}
  file/traces: {path: DIR/traces.jsonl, flush_interval: 100ms}
  file/logs: {path: DIR/logs.jsonl, flush_interval: 100ms}
service:
  telemetry:
    metrics:
      level: normal
      readers:
        - pull:
            exporter:
              prometheus: {host: 127.0.0.1, port: 8888}
  pipelines:
    metrics: {receivers: [rdma], exporters: [file/metrics]}
    traces: {receivers: [rdma], exporters: [file/traces]}
    logs: {receivers: [rdma], exporters: [file/logs]}
`

// collectorStart bounds the start of a collector, which takes 10 s of an
// emulated CPU: the kernel verifies the programs.
const collectorStart = 3 * time.Minute

const telemetryAddress = "http://127.0.0.1:8888/metrics"

// collector is a running otelcol-rdma, shared by the tests that do not end it:
// loading its programs takes an emulated machine many seconds. Each test looks
// at what was exported since its own beginning.
type collector struct {
	*process
	mode           mode
	dir            string
	metricsTail    *otlp.Tail
	spansTail      *otlp.Tail
	logsTail       *otlp.Tail
	all, baseline  otlp.Metrics
	spansSinceMark []otlp.Span
	records        []otlp.Record
}

// runningCollector returns a collector as it comes, at its completion sites, and
// marks the beginning of a test.
func (g *Guest) runningCollector(ctx context.Context) (*collector, error) {
	return g.collectorIn(ctx, atSites())
}

// startCollector starts a collector and waits until it probes the provider of
// the keeper, and the driver in the kernel.
func (g *Guest) startCollector(ctx context.Context, m mode) error {
	c, err := g.launchCollector(m, nil, nil)
	if err != nil {
		return err
	}
	g.collector = c
	begin := time.Now()
	err = waitFor(ctx, collectorStart, "the collector probes rxe", func() (bool, error) {
		if exited, status := c.exited(); exited {
			return false, fmt.Errorf("the collector ended (%v): %s", status, c.outputTail())
		}
		telemetry, err := c.telemetry(ctx)
		if err != nil {
			return false, nil // not listening yet
		}
		_, kernel := probesKernelVerbs(telemetry)
		return kernel && pollMode(telemetry) != "", nil
	})
	if err != nil {
		return fmt.Errorf("%w; the end of its output: %s", err, c.outputTail())
	}
	fmt.Printf("    %s probes rxe after %.1f s\n", filepath.Base(c.dir), time.Since(begin).Seconds())
	return nil
}

// launchCollector starts a collector in a directory of its own, with the settings
// of a mode and more arguments, prefixed by the words of a wrapper. It may be that of
// another user.
func (g *Guest) launchCollector(m mode, wrapper, arguments []string) (*collector, error) {
	g.collectors++
	dir := filepath.Join(workDir, fmt.Sprintf("collector-%d", g.collectors))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "collector.yaml")
	onError := "propagate"
	if m.runsOn {
		onError = "ignore"
	}
	text := strings.NewReplacer("DIR", dir, "SETTINGS", m.settings, "ERRORS", onError).Replace(configuration)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		return nil, err
	}
	words := slices.Concat(wrapper, []string{g.collectorPath, "--config", path}, arguments)
	p, err := startProcess(filepath.Join(dir, "collector.log"), words...)
	if err != nil {
		return nil, err
	}
	return &collector{
		process: p, mode: m, dir: dir,
		metricsTail: otlp.NewTail(filepath.Join(dir, "metrics.jsonl")),
		spansTail:   otlp.NewTail(filepath.Join(dir, "traces.jsonl")),
		logsTail:    otlp.NewTail(filepath.Join(dir, "logs.jsonl")),
	}, nil
}

// stopCollector ends the collector as a service manager does and expects
// success.
func (g *Guest) stopCollector(ctx context.Context) error {
	c := g.collector
	g.collector = nil
	c.signal(syscall.SIGTERM)
	err := c.wait(ctx, 2*patience)
	c.kill()
	return errors.Join(err, g.keepLogs(c.dir))
}

// killCollector ends the collector with SIGKILL.
func (g *Guest) killCollector() error {
	c := g.collector
	g.collector = nil
	c.kill()
	return g.keepLogs(c.dir)
}

// mark makes everything exported so far the past, once the interval after the one
// in which there was work is exported.
func (c *collector) mark(ctx context.Context, worked time.Time) error {
	if err := c.collected(ctx, worked.Add(interval)); err != nil {
		return err
	}
	c.baseline = c.all.Latest()
	c.all = c.baseline.Latest()
	if _, err := c.spans(); err != nil {
		return err
	}
	err := c.readRecords()
	c.spansSinceMark, c.records = nil, nil
	return err
}

// collected waits until something that was collected after a moment is exported. The
// ports of the devices always are.
func (c *collector) collected(ctx context.Context, after time.Time) error {
	return waitFor(ctx, patience, "the metrics are collected and exported", func() (bool, error) {
		_, err := c.metrics()
		return c.newest().After(after), err
	})
}

// newest is the time of the newest point that was read.
func (c *collector) newest() time.Time {
	var newest time.Time
	for _, p := range c.all {
		if p.Time.After(newest) {
			newest = p.Time
		}
	}
	return newest
}

// readRecords reads what was logged since the last call.
func (c *collector) readRecords() error {
	added, err := c.logsTail.Records()
	c.records = append(c.records, added...)
	return err
}

// recordsSinceMark returns the events of a service that were read since the
// mark.
func (c *collector) recordsSinceMark(service, event string) []otlp.Record {
	var found []otlp.Record
	for _, r := range c.records {
		if r.Service == service && r.Event == event {
			found = append(found, r)
		}
	}
	return found
}

// metrics returns the last points before the mark and all since.
func (c *collector) metrics() (otlp.Metrics, error) {
	added, err := c.metricsTail.Metrics()
	c.all = append(c.all, added...)
	return c.all, err
}

// total returns by how much the matching series rose since the mark.
func (c *collector) total(m otlp.Match) float64 { return c.all.Total(m) - c.baseline.Total(m) }

// histogram returns what was added to the matching histograms since the mark.
func (c *collector) histogram(m otlp.Match) otlp.Histogram {
	now, before := c.all.Histogram(m), c.baseline.Histogram(m)
	return now.Since(&before)
}

// spans returns the spans exported since the mark.
func (c *collector) spans() ([]otlp.Span, error) {
	added, err := c.spansTail.Spans()
	c.spansSinceMark = append(c.spansSinceMark, added...)
	return c.spansSinceMark, err
}

func (c *collector) telemetry(ctx context.Context) (otlp.Metrics, error) { return ownMetrics(ctx) }

// ownMetrics reads the own metrics of the collector that runs, without the suffix that
// the Prometheus exposition adds to counters.
func ownMetrics(ctx context.Context) (otlp.Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, telemetryAddress, nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Timeout: patience}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	all, err := otlp.ReadPrometheus(response.Body)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Metric = strings.TrimSuffix(all[i].Metric, "_total")
	}
	return all, nil
}

// balance checks the conservation of work requests and completions in the
// collector's own telemetry, and that something was counted at all. It settles
// only when no request is on its way, so it is tried a few times.
func (c *collector) balance(ctx context.Context) error {
	var last error
	err := waitFor(ctx, patience, "the books balance", func() (bool, error) {
		telemetry, err := c.telemetry(ctx)
		if err != nil {
			return false, err
		}
		last = errors.Join(
			balanced(telemetry, "otelcol_rdma_wqes_posted", "otelcol_rdma_wqes"),
			balanced(telemetry, "otelcol_rdma_completions_seen", "otelcol_rdma_completions"),
		)
		return last == nil, nil
	})
	return errors.Join(err, last)
}

func balanced(telemetry otlp.Metrics, whole, parts string) error {
	if len(telemetry.Select(otlp.Match{Metric: whole})) == 0 {
		return fmt.Errorf("the collector's telemetry has no %s", whole)
	}
	total, sum := telemetry.Total(otlp.Match{Metric: whole}), telemetry.Total(otlp.Match{Metric: parts})
	if total == 0 {
		return fmt.Errorf("%s is 0 although clients ran", whole)
	}
	if total != sum {
		return fmt.Errorf("%s is %.0f, its parts add up to %.0f: %s", whole, total, sum, fates(telemetry, parts))
	}
	return nil
}

// fates spells out the parts of a balance.
func fates(telemetry otlp.Metrics, metric string) string {
	var words []string
	for _, p := range telemetry.Select(otlp.Match{Metric: metric}) {
		if p.Value != 0 {
			words = append(words, fmt.Sprintf("%s %s=%.0f", p.Attributes["fate"], p.Attributes["reason"], p.Value))
		}
	}
	return strings.Join(words, ", ")
}
