package rdmareceiver

import (
	"cmp"
	"iter"
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
func (m *metricsEmitter) emit(a *aggregator, ended []seriesKey, owners map[owner]*ownerState, now pcommon.Timestamp) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	for group := range chunks(allPoints(a, ended), sameResource) {
		into := pmetric.NewResourceMetrics()
		m.resourceOf(group[0].key).CopyTo(into.Resource())
		scope := into.ScopeMetrics().AppendEmpty()
		setScope(scope.Scope(), m.in.version)
		for batch := range chunks(group, sameBatch) {
			start := a.started
			if state := owners[batch[0].key.owner]; state != nil {
				start = state.start
			}
			m.emitBatch(scope.Metrics(), batch, min(start, now), now)
		}
		if scope.Metrics().Len() > 0 {
			into.MoveTo(metrics.ResourceMetrics().AppendEmpty())
		}
	}
	return metrics
}

func (m *metricsEmitter) resourceOf(key seriesKey) pcommon.Resource {
	if key.ofHost {
		return hostResource(m.in.host)
	}
	return jobResource(m.in.host, key.owner.job)
}

// allPoints returns the points of all series in an order that does not change:
// resources, and in them batches, stay together.
func allPoints(a *aggregator, ended []seriesKey) []point {
	points := make([]point, 0, len(a.series)+len(ended))
	for key, state := range a.series {
		points = append(points, point{key: key, state: state})
	}
	for _, key := range ended {
		points = append(points, point{key: key, state: &series{}, ended: true})
	}
	slices.SortFunc(points, func(x, y point) int {
		return cmp.Or(
			compareJobs(x.key.owner.job, y.key.owner.job),
			compareBools(x.key.ofHost, y.key.ofHost),
			compareBools(x.ended, y.ended),
			compareBools(x.key.overflow, y.key.overflow),
			compareKeys(x.key, y.key),
		)
	})
	return points
}

// chunks yields the longest runs of values that are the same.
func chunks[T any](all []T, same func(a, b T) bool) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for start := 0; start < len(all); {
			end := start + 1
			for end < len(all) && same(all[start], all[end]) {
				end++
			}
			if !yield(all[start:end]) {
				return
			}
			start = end
		}
	}
}

func sameResource(a, b point) bool {
	return a.key.owner.job == b.key.owner.job && a.key.ofHost == b.key.ofHost
}

// sameBatch is true for points that the generated builder may be given
// together: it knows neither their ends and overflows nor the attributes of
// owner and queue, which finish adds to all points of a batch.
func sameBatch(a, b point) bool {
	return a.ended == b.ended && a.key.overflow == b.key.overflow && a.key.owner == b.key.owner && a.key.queue == b.key.queue
}

func (m *metricsEmitter) emitBatch(into pmetric.MetricSlice, batch []point, start, now pcommon.Timestamp) {
	numbers := pmetric.NewMetricSlice()
	histograms := pmetric.NewMetricSlice()
	for _, p := range batch {
		m.record(p, now)
		m.appendHistogram(histograms, p, start, now)
	}
	m.takeRecorded(numbers, start)
	for _, metrics := range []pmetric.MetricSlice{numbers, histograms} {
		finish(metrics, batch[0])
		merge(metrics, into, batch[0].ended)
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
		b.RecordRdmaWqeExcessTimeDataPoint(now, seconds, k.device, k.detail)
	case wqeCompletions:
		b.RecordRdmaWqeCompletionsDataPoint(now, v, k.device, k.detail, errorType(k)...)
	case wqeSlowCompletions:
		b.RecordRdmaWqeSlowCompletionsDataPoint(now, v, k.device, k.detail)
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
	case mrRegistrations:
		b.RecordRdmaMrRegistrationsDataPoint(now, v, k.device, append(memoryKind(k), errorType(k)...)...)
	case mrRegistrationSize:
		b.RecordRdmaMrRegistrationSizeDataPoint(now, v, k.device, memoryKind(k)...)
	case mrRegistrationTime:
		b.RecordRdmaMrRegistrationTimeDataPoint(now, seconds, k.device, memoryKind(k)...)
	case mrDeregistrationTime:
		b.RecordRdmaMrDeregistrationTimeDataPoint(now, seconds, k.device, memoryKind(k)...)
	case mrRegions:
		b.RecordRdmaMrRegionsDataPoint(now, v, k.device, memoryKind(k)...)
	case mrRegistered:
		b.RecordRdmaMrRegisteredDataPoint(now, v, k.device, memoryKind(k)...)
	case queueCount:
		b.RecordRdmaQueuesDataPoint(now, v, k.device, metadata.MapAttributeRdmaQueueState[k.detail])
	case activeIncidents:
		b.RecordRdmaActiveIncidentsDataPoint(now, v, k.device, k.detail)
	case probeMode:
		b.RecordRdmaProbeModeDataPoint(now, v, k.provider, k.function, metadata.MapAttributeRdmaProbeMode[k.detail])
	case probeShare:
		b.RecordRdmaProbeObservedShareDataPoint(now, p.state.ratio, k.provider)
	case routeQueues:
		b.RecordRdmaRouteQueuesDataPoint(now, v, k.device, k.route.attributes()...)
	case routeThroughput:
		b.RecordRdmaRouteThroughputDataPoint(now, float64(v), k.device, k.route.attributes()...)
	case routeDuration:
		b.RecordRdmaRouteDurationDataPoint(now, seconds, k.device, metadata.MapAttributeRdmaRouteQuantile[k.detail], k.route.attributes()...)
	case routeSlowCompletions:
		b.RecordRdmaRouteSlowCompletionsDataPoint(now, v, k.device, k.route.attributes()...)
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
	putString(at.Attributes(), attributeDevice, p.key.device)
	putString(at.Attributes(), attributeOperation, p.key.detail)
	putString(at.Attributes(), attributeErrorType, p.key.errorType)
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
