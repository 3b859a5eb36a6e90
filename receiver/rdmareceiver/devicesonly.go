package rdmareceiver

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap/exp/zapslog"
)

// exportDevices exports the devices of a host on which tracing cannot start, for
// as long as tracing would have gone on: reading them takes no privilege.
func (r *rdmaReceiver) exportDevices(tracing, delivery context.Context, self *selfTelemetry) {
	if !r.pipelines.metrics.wanted {
		return
	}
	host, err := r.platform.openHost(r.cfg.RootPath, slog.New(zapslog.NewHandler(r.settings.Logger.Core())))
	if err != nil || host.watchDevices == nil {
		return
	}
	source := host.watchDevices(r.cfg.Devices.matcher(), r.cfg.Counters.matcher())
	emitter := newDeviceEmitter(r.cfg, r.settings, surroundings{
		host: host.facts, topology: host.topology, version: scopeVersion(r.settings.BuildInfo),
	})
	tick := time.NewTicker(r.cfg.CollectionInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := r.exportSample(delivery, source, emitter); err != nil {
				self.countDroppedMetrics(outcomeRefused)
			}
		case <-tracing.Done():
			return
		}
	}
}

func (r *rdmaReceiver) exportSample(ctx context.Context, source deviceSource, emitter *deviceEmitter) error {
	r.holdup.waitFor("a device, whose counters were asked for")
	sample := source.Sample()
	metrics := pmetric.NewMetrics()
	ends := emitter.emit(metrics, &sample, nil)
	if metrics.DataPointCount() == 0 {
		return nil
	}
	r.holdup.waitFor("the metrics pipeline")
	err := r.pipelines.sendMetrics(ctx, metrics)
	if err != nil {
		emitter.ends.keep(ends)
	}
	return err
}
