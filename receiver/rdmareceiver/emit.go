package rdmareceiver

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// attributeOverflow marks the point that takes what max_series leaves no room
// for, as the OpenTelemetry SDKs do.
const attributeOverflow = "otel.metric.overflow"

// metricsEmitter turns the series of an aggregator into pdata. Sums and gauges
// go through the generated builder, which applies the user's settings.
type metricsEmitter struct {
	builder   *metadata.MetricsBuilder
	histogram HistogramKind
	tables    map[instrument]histogramMetric
	in        surroundings
}

func newMetricsEmitter(cfg *Config, settings receiver.Settings, in surroundings) *metricsEmitter {
	builder := metadata.MetricsBuilderConfig{Metrics: cfg.Metrics, ResourceAttributes: metadata.DefaultResourceAttributesConfig()}
	return &metricsEmitter{
		builder:   metadata.NewMetricsBuilder(builder, settings),
		histogram: cfg.Histogram,
		tables:    histogramMetrics(),
		in:        in,
	}
}

// point is one series with what its next data point needs.
type point struct {
	key   seriesKey
	state *series
	// ended is true for a series whose last point this is.
	ended bool
}

// emit builds one data point for every series of the aggregator and a last one
// for those that ended.
func (m *metricsEmitter) emit(a *aggregator, ended []seriesKey, jobs map[jobKey]*jobState, now pcommon.Timestamp) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	for _, group := range groups(a, ended) {
		start, resource := a.started, hostResource(m.in.host)
		if !group[0].key.ofHost {
			start, resource = jobs[group[0].key.job].start, jobResource(m.in.host, group[0].key.job)
		}
		m.emitGroup(metrics, group, resource, min(start, now), now)
	}
	return metrics
}

// groups returns the points of all series by resource, in an order that does
// not change.
func groups(a *aggregator, ended []seriesKey) [][]point {
	var points []point
	for _, key := range a.sortedKeys() {
		points = append(points, point{key: key, state: a.series[key]})
	}
	for _, key := range ended {
		points = append(points, point{key: key, state: &series{}, ended: true})
	}
	slices.SortStableFunc(points, func(x, y point) int { return compareKeys(x.key, y.key) })
	var grouped [][]point
	for start := 0; start < len(points); {
		end := start + 1
		for end < len(points) && sameResource(points[start].key, points[end].key) {
			end++
		}
		grouped = append(grouped, points[start:end])
		start = end
	}
	return grouped
}

func sameResource(a, b seriesKey) bool {
	return a.job == b.job && a.ofHost == b.ofHost
}

// emitGroup builds the points of one resource: those that are alive, those that
// end, and those that overflowed, each kind apart, because the generated builder
// knows only the first.
func (m *metricsEmitter) emitGroup(metrics pmetric.Metrics, group []point, resource pcommon.Resource, start, now pcommon.Timestamp) {
	into := pmetric.NewResourceMetrics()
	resource.CopyTo(into.Resource())
	scope := into.ScopeMetrics().AppendEmpty()
	setScope(scope.Scope(), m.in.version)
	for _, kind := range []struct {
		ended, overflow bool
	}{{false, false}, {false, true}, {true, false}, {true, true}} {
		numbers := pmetric.NewMetricSlice()
		histograms := pmetric.NewMetricSlice()
		for _, p := range group {
			if p.ended != kind.ended || p.key.overflow != kind.overflow {
				continue
			}
			m.record(p, now)
			m.appendHistogram(histograms, p, start, now)
		}
		m.takeRecorded(numbers, start)
		finish(numbers, kind.ended, kind.overflow)
		finish(histograms, kind.ended, kind.overflow)
		merge(numbers, scope.Metrics())
		merge(histograms, scope.Metrics())
	}
	if scope.Metrics().Len() > 0 {
		into.MoveTo(metrics.ResourceMetrics().AppendEmpty())
	}
}

// record hands a point to the generated builder.
func (m *metricsEmitter) record(p point, now pcommon.Timestamp) {
	b, k, v := m.builder, p.key, p.state.value
	seconds := float64(v) / 1e9
	switch k.instrument {
	case wqeStageTime:
		b.RecordRdmaWqeStageTimeDataPoint(now, seconds, k.device, metadata.MapAttributeRdmaWqeStage[k.detail])
	case wqeExcessTime:
		b.RecordRdmaWqeExcessTimeDataPoint(now, seconds, k.device, metadata.MapAttributeRdmaSlowCause[k.detail])
	case wqeCompletions:
		b.RecordRdmaWqeCompletionsDataPoint(now, v, k.device, k.detail, errorType(k)...)
	case wqeSlowCompletions:
		b.RecordRdmaWqeSlowCompletionsDataPoint(now, v, k.device, metadata.MapAttributeRdmaSlowCause[k.detail])
	case wqeOldestOutstanding:
		b.RecordRdmaWqeOldestOutstandingDataPoint(now, seconds, k.device)
	case ioBytes:
		b.RecordRdmaIoDataPoint(now, v, k.device, metadata.MapAttributeNetworkIoDirection[k.detail])
	case sqOutstanding:
		b.RecordRdmaSqOutstandingDataPoint(now, v, k.device)
	case sqLimit:
		b.RecordRdmaSqLimitDataPoint(now, v, k.device)
	case sqPeakOutstanding:
		b.RecordRdmaSqPeakOutstandingDataPoint(now, v, k.device)
	case sqUtilization:
		b.RecordRdmaSqUtilizationDataPoint(now, p.state.ratio, k.device)
	case sqRejectedPosts:
		b.RecordRdmaSqRejectedPostsDataPoint(now, v, k.device, errorType(k)...)
	case rqOutstanding:
		b.RecordRdmaRqOutstandingDataPoint(now, v, k.device)
	case rqEmpty:
		b.RecordRdmaRqEmptyDataPoint(now, v, k.device)
	case queueCount:
		b.RecordRdmaQueuesDataPoint(now, v, k.device, metadata.MapAttributeRdmaQueueState[k.detail])
	case wqeDuration, numInstruments:
		// Histograms are built by appendHistogram.
	}
}

func errorType(k seriesKey) []metadata.MetricAttributeOption {
	if k.errorType == "" {
		return nil
	}
	return []metadata.MetricAttributeOption{metadata.WithErrorTypeMetricAttribute(k.errorType)}
}

// takeRecorded moves what was recorded out of the generated builder.
func (m *metricsEmitter) takeRecorded(to pmetric.MetricSlice, start pcommon.Timestamp) {
	recorded := m.builder.Emit(metadata.WithStartTimeOverride(start)).ResourceMetrics()
	for i := range recorded.Len() {
		recorded.At(i).ScopeMetrics().At(0).Metrics().MoveAndAppendTo(to)
	}
}

// appendHistogram adds a point of a histogram, if the series is one.
func (m *metricsEmitter) appendHistogram(to pmetric.MetricSlice, p point, start, now pcommon.Timestamp) {
	table, ok := m.tables[p.key.instrument]
	if !ok {
		return
	}
	metric := metricNamed(to, table)
	if m.histogram == HistogramExplicit {
		at := explicitPoints(metric).AppendEmpty()
		if !p.ended {
			fillExplicitPoint(at, p.state.durations)
		}
		finishHistogram(at, p, start, now)
		return
	}
	at := exponentialPoints(metric).AppendEmpty()
	if !p.ended {
		fillExponentialPoint(at, p.state.durations)
	}
	finishHistogram(at, p, start, now)
}

func metricNamed(metrics pmetric.MetricSlice, table histogramMetric) pmetric.Metric {
	for i := range metrics.Len() {
		if metrics.At(i).Name() == table.Name {
			return metrics.At(i)
		}
	}
	metric := metrics.AppendEmpty()
	metric.SetName(table.Name)
	metric.SetDescription(table.Description)
	metric.SetUnit(table.Unit)
	return metric
}

func finishHistogram(at histogramPoint, p point, start, now pcommon.Timestamp) {
	at.SetStartTimestamp(start)
	at.SetTimestamp(now)
	if !p.key.overflow {
		putString(at.Attributes(), attributeDevice, p.key.device)
		putString(at.Attributes(), attributeOperation, p.key.detail)
		putString(at.Attributes(), attributeErrorType, p.key.errorType)
	}
	for _, e := range p.state.takeExemplars() {
		fillExemplar(at.Exemplars().AppendEmpty(), e)
	}
}

func fillExemplar(to pmetric.Exemplar, e exemplar) {
	to.SetDoubleValue(e.seconds)
	to.SetTimestamp(e.at)
	to.SetTraceID(e.traceID)
	to.SetSpanID(e.spanID)
}
