package rdmareceiver

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// newFactory returns a factory whose receivers know of one another.
func newFactory(platform platform) receiver.Factory {
	f := &factory{platform: platform, instances: newInstances()}
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithTraces(f.createTraces, metadata.TracesStability),
		receiver.WithMetrics(f.createMetrics, metadata.MetricsStability),
		receiver.WithLogs(f.createLogs, metadata.LogsStability),
	)
}

type factory struct {
	platform  platform
	instances *instances
}

func (f *factory) createTraces(_ context.Context, settings receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	shared, err := f.shared(settings, cfg)
	if err != nil {
		return nil, err
	}
	shared.pipelines.traces.connect(next)
	return &signalReceiver{shared: shared, open: &shared.pipelines.traces.open}, nil
}

func (f *factory) createMetrics(_ context.Context, settings receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	shared, err := f.shared(settings, cfg)
	if err != nil {
		return nil, err
	}
	shared.pipelines.metrics.connect(next)
	return &signalReceiver{shared: shared, open: &shared.pipelines.metrics.open}, nil
}

func (f *factory) createLogs(_ context.Context, settings receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	shared, err := f.shared(settings, cfg)
	if err != nil {
		return nil, err
	}
	shared.pipelines.logs.connect(next)
	return &signalReceiver{shared: shared, open: &shared.pipelines.logs.open}, nil
}

// shared returns the instance that the three signals of a configuration share.
func (f *factory) shared(settings receiver.Settings, cfg component.Config) (*rdmaReceiver, error) {
	config := cfg.(*Config)
	return f.instances.of(config, func() (*rdmaReceiver, error) {
		return newReceiver(config, settings, f.platform, f.instances)
	})
}

// signalReceiver is the component of one signal.
type signalReceiver struct {
	shared *rdmaReceiver
	// open says that the pipelines of the signal run.
	open *atomic.Bool
}

// Start begins tracing, unless another signal has done so.
func (s *signalReceiver) Start(ctx context.Context, host component.Host) error {
	if err := s.shared.start(ctx, host); err != nil {
		return err
	}
	s.open.Store(true)
	return nil
}

// Shutdown ends tracing for all signals.
func (s *signalReceiver) Shutdown(ctx context.Context) error {
	err := s.shared.shutdown(ctx)
	s.open.Store(false)
	return err
}
