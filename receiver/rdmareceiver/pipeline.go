package rdmareceiver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
)

// transport and format are what the collector's own metrics say of where the
// data comes from.
const (
	transport = "ebpf"
	format    = "ebpf"
)

// outlet is the way to the pipelines of one signal. It is open between Start and
// Shutdown of that signal's component, because only then does the pipeline
// behind it run.
type outlet[C any] struct {
	next C
	// wanted is true when there is a pipeline of this signal.
	wanted bool
	open   atomic.Bool
}

// errNotRunning is what becomes of data for a pipeline that is not open. It is no
// refusal by the pipeline, and the collector's own metrics do not count it.
var errNotRunning = errors.New("the pipeline does not run")

func (o *outlet[C]) connect(next C) { o.next, o.wanted = next, true }

// pipelines hand telemetry to the collector and count what it takes.
type pipelines struct {
	traces  outlet[consumer.Traces]
	logs    outlet[consumer.Logs]
	metrics outlet[consumer.Metrics]
	obs     *receiverhelper.ObsReport
	delays  []time.Duration
}

func newPipelines(settings receiver.Settings) (*pipelines, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: settings.ID, Transport: transport, ReceiverCreateSettings: settings,
	})
	if err != nil {
		return nil, err
	}
	return &pipelines{obs: obs, delays: retryDelays()}, nil
}

// sendTraces builds the spans anew for each attempt: a consumer may change what
// it is given.
func (p *pipelines) sendTraces(ctx context.Context, events []slowEvent, in surroundings) error {
	if !p.traces.open.Load() {
		return errNotRunning
	}
	ctx = p.obs.StartTracesOp(ctx)
	err := retry(ctx, p.delays, func() error {
		return p.traces.next.ConsumeTraces(ctx, buildTraces(events, in))
	})
	p.obs.EndTracesOp(ctx, format, spanCount(events), err)
	return err
}

func (p *pipelines) sendLogs(ctx context.Context, batch logBatch, in surroundings) error {
	if !p.logs.open.Load() {
		return errNotRunning
	}
	ctx = p.obs.StartLogsOp(ctx)
	err := retry(ctx, p.delays, func() error {
		return p.logs.next.ConsumeLogs(ctx, buildLogs(batch, in))
	})
	p.obs.EndLogsOp(ctx, format, batch.len(), err)
	return err
}

// sendMetrics makes one attempt: the values are cumulative, and those of the
// next interval are newer.
func (p *pipelines) sendMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	if !p.metrics.open.Load() {
		return errNotRunning
	}
	points := metrics.DataPointCount()
	ctx = p.obs.StartMetricsOp(ctx)
	err := p.metrics.next.ConsumeMetrics(ctx, metrics)
	p.obs.EndMetricsOp(ctx, format, points, err)
	return err
}
