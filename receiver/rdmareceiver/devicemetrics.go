package rdmareceiver

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// deviceEmitter turns samples of the devices into metrics of the host.
type deviceEmitter struct {
	builder *metadata.MetricsBuilder
	in      surroundings
	// started is when the first sample was taken, emitted when the last one.
	started, emitted time.Time
	ends             seriesEnds
	unattributed     unattributed
}

func newDeviceEmitter(cfg *Config, settings receiver.Settings, in surroundings) *deviceEmitter {
	builder := metadata.MetricsBuilderConfig{Metrics: cfg.Metrics, ResourceAttributes: metadata.DefaultResourceAttributesConfig()}
	return &deviceEmitter{builder: metadata.NewMetricsBuilder(builder, settings), in: in}
}

// emit adds the metrics of a sample, each sample once; there may be none yet.
// traced is the payload that each device transmitted, nil where nothing is
// traced. It returns the ends of series among them, which are to be kept in
// d.ends when they are not exported.
func (d *deviceEmitter) emit(into pmetric.Metrics, sample *fabric.Sample, traced map[string]uint64) pmetric.MetricSlice {
	if sample == nil || sample.At.Equal(d.emitted) {
		return pmetric.NewMetricSlice()
	}
	if d.started.IsZero() {
		d.started = sample.At
	}
	d.emitted = sample.At
	now := pcommon.NewTimestampFromTime(sample.At)
	metrics := pmetric.NewMetricSlice()
	d.emitStates(metrics, sample.Devices, now)
	d.emitCounters(metrics, sample.Readings, now)
	if traced != nil {
		d.emitUnattributed(metrics, sample, traced, now)
	}
	ends := d.ends.end(metrics, now)
	if metrics.Len() > 0 {
		merge(metrics, d.hostMetrics(into), false)
	}
	return ends
}

// hostMetrics returns the metrics of the host, which may be there already.
func (d *deviceEmitter) hostMetrics(in pmetric.Metrics) pmetric.MetricSlice {
	resource := hostResource(d.in.host)
	for i := range in.ResourceMetrics().Len() {
		if rm := in.ResourceMetrics().At(i); rm.Resource().Attributes().Equal(resource.Attributes()) {
			return rm.ScopeMetrics().At(0).Metrics()
		}
	}
	rm := in.ResourceMetrics().AppendEmpty()
	resource.CopyTo(rm.Resource())
	scope := rm.ScopeMetrics().AppendEmpty()
	setScope(scope.Scope(), d.in.version)
	return scope.Metrics()
}

// emitCounters emits together what began together: that is the devices that
// were there from the start, and each that came later.
func (d *deviceEmitter) emitCounters(into pmetric.MetricSlice, readings []fabric.Reading, now pcommon.Timestamp) {
	readings = slices.Clone(readings)
	slices.SortStableFunc(readings, func(a, b fabric.Reading) int { return a.Since.Compare(b.Since) })
	together := func(a, b fabric.Reading) bool { return a.Since.Equal(b.Since) }
	for batch := range chunks(readings, together) {
		for _, r := range batch {
			d.recordCounter(r, now)
		}
		d.take(into, batch[0].Since)
	}
}

func (d *deviceEmitter) emitUnattributed(into pmetric.MetricSlice, sample *fabric.Sample, traced map[string]uint64, now pcommon.Timestamp) {
	for _, u := range d.unattributed.update(sample, traced) {
		d.builder.RecordRdmaPortUnattributedDataPoint(now, u.bytes, u.device)
		d.take(into, u.started)
	}
}

func (d *deviceEmitter) take(into pmetric.MetricSlice, since time.Time) {
	recorded := d.builder.Emit(metadata.WithStartTimeOverride(pcommon.NewTimestampFromTime(since))).ResourceMetrics()
	for i := range recorded.Len() {
		merge(recorded.At(i).ScopeMetrics().At(0).Metrics(), into, false)
	}
}

// recordCounter hands a reading to the generated builder.
func (d *deviceEmitter) recordCounter(r fabric.Reading, now pcommon.Timestamp) {
	b, device, direction := d.builder, r.Device, metadata.MapAttributeNetworkIoDirection[r.Counter.Direction]
	of := readingOptions(r)
	switch r.Counter.Metric {
	case fabric.MetricPortIO:
		b.RecordRdmaPortIoDataPoint(now, r.Int(), device, direction, of...)
	case fabric.MetricPortPackets:
		b.RecordRdmaPortPacketsDataPoint(now, r.Int(), device, direction, of...)
	case fabric.MetricPortDiscards:
		b.RecordRdmaPortDiscardsDataPoint(now, r.Int(), device, direction, r.Name, of...)
	case fabric.MetricPortErrors:
		b.RecordRdmaPortErrorsDataPoint(now, r.Int(), device, r.Name, of...)
	case fabric.MetricPortCorrectedBits:
		b.RecordRdmaPortCorrectedBitsDataPoint(now, r.Int(), device, of...)
	case fabric.MetricPortLinkDowns:
		b.RecordRdmaPortLinkDownsDataPoint(now, r.Int(), device, r.Name, of...)
	case fabric.MetricPortTransmitWait:
		b.RecordRdmaPortTransmitWaitDataPoint(now, r.Int(), device, of...)
	case fabric.MetricPortPauseFrames:
		b.RecordRdmaPortPauseFramesDataPoint(now, r.Int(), device, direction, of...)
	case fabric.MetricPortPauseTime:
		b.RecordRdmaPortPauseTimeDataPoint(now, r.Float(), device, direction, of...)
	case fabric.MetricPortPauseStorms:
		b.RecordRdmaPortPauseStormsDataPoint(now, r.Int(), device, r.Name, of...)
	case fabric.MetricPortCongestion:
		b.RecordRdmaPortCongestionPacketsDataPoint(now, r.Int(), device, r.Name, of...)
	case fabric.MetricPortTransport:
		b.RecordRdmaPortTransportEventsDataPoint(now, r.Int(), device, r.Name, of...)
	case fabric.MetricPortRequestErrors:
		b.RecordRdmaPortRequestErrorsDataPoint(now, r.Int(), device, r.Name, of...)
	case fabric.MetricPortRequests:
		b.RecordRdmaPortRequestsDataPoint(now, r.Int(), device, r.Name, of...)
	case fabric.MetricPCIeErrors:
		b.RecordRdmaDevicePcieErrorsDataPoint(now, r.Int(), device, r.Name)
	case fabric.MetricPCIeStalled:
		b.RecordRdmaDevicePcieStalledDataPoint(now, r.Float(), device, r.Name)
	case fabric.MetricPCIeStallTime:
		b.RecordRdmaDevicePcieStallTimeDataPoint(now, r.Float(), device, r.Name)
	}
}

func readingOptions(r fabric.Reading) []metadata.MetricAttributeOption {
	var of []metadata.MetricAttributeOption
	if r.Port > 0 {
		of = append(of, metadata.WithRdmaDevicePortMetricAttribute(int64(r.Port)))
	}
	if r.Priority != nil {
		of = append(of, metadata.WithRdmaPortPriorityMetricAttribute(int64(*r.Priority)))
	}
	return of
}
