package rdmareceiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
)

const (
	// drainTime is how long Shutdown waits for the pipelines to take what is
	// left, and then once more for everything to end.
	drainTime  = 5 * time.Second
	modulePath = "github.com/rdmaradar/rdmaradar"
)

// rdmaReceiver is what the components of the three signals share.
type rdmaReceiver struct {
	cfg       *Config
	settings  receiver.Settings
	platform  platform
	instances *instances
	pipelines *pipelines
	status    statusBoard

	mu    sync.Mutex
	phase phase
	shown shown
	// stop ends tracing, giveUp the delivery of what is left; done is closed
	// when nothing runs any more.
	stop, giveUp context.CancelFunc
	done         chan struct{}
	holdup       holdup
}

// phase is how far a receiver has come. It only ever goes forward.
type phase uint8

const (
	phaseNew phase = iota
	phaseRunning
	phaseStopped
)

func newReceiver(cfg *Config, settings receiver.Settings, platform platform, instances *instances) (*rdmaReceiver, error) {
	pipelines, err := newPipelines(settings)
	if err != nil {
		return nil, err
	}
	return &rdmaReceiver{cfg: cfg, settings: settings, platform: platform, instances: instances, pipelines: pipelines}, nil
}

// start begins tracing with the first of the components. It returns at once,
// and attaching the probes goes on in the background, unless their failure is
// to be the failure of the start.
func (r *rdmaReceiver) start(ctx context.Context, host component.Host) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.phase {
	case phaseStopped:
		return errors.New("the receiver was shut down and cannot start again")
	case phaseRunning:
		r.status.join(host)
		return nil
	}
	if err := r.instances.acquire(r); err != nil {
		return err
	}
	self, err := newSelfTelemetry(r.settings.TelemetrySettings)
	if err != nil {
		r.instances.release(r)
		return fmt.Errorf("create the receiver's own metrics: %w", err)
	}
	r.status.join(host)
	r.phase = phaseRunning
	r.shown = show(host)
	opened := r.launch(self)
	if r.cfg.ErrorMode == ErrorModePropagate {
		return r.awaitOpen(ctx, opened)
	}
	return nil
}

// launch returns where the outcome of opening will be told. It must not use the
// context of Start, which ends with it.
func (r *rdmaReceiver) launch(self *selfTelemetry) <-chan error {
	tracing, stop := context.WithCancel(context.Background())
	delivery, giveUp := context.WithCancel(context.Background())
	r.stop, r.giveUp, r.done = stop, giveUp, make(chan struct{})
	opened := make(chan error, 1)
	go func() {
		defer close(r.done)
		defer self.shutdown()
		r.run(tracing, delivery, self, opened)
	}()
	return opened
}

// awaitOpen makes the outcome of opening that of the start. A fatal status,
// which would end the collector as well, is no way to do so: the collector takes
// one, only while it neither starts nor stops, and blocks all who report
// another. It also ends with exit code 0 then.
func (r *rdmaReceiver) awaitOpen(ctx context.Context, opened <-chan error) error {
	select {
	case err := <-opened:
		return err
	case <-ctx.Done():
		r.stop()
		return fmt.Errorf("RDMA tracing did not start in time: %w", ctx.Err())
	}
}

// run traces until the context ends. When tracing cannot start it says so.
func (r *rdmaReceiver) run(tracing, delivery context.Context, self *selfTelemetry, opened chan<- error) {
	r.holdup.waitFor("the start of tracing, which attaches the probes")
	s, err := r.open(tracing, self)
	if err == nil {
		opened <- nil
		s.run(tracing, delivery)
		return
	}
	err = fmt.Errorf("RDMA tracing cannot start: %w", err)
	opened <- err
	if tracing.Err() != nil || r.cfg.ErrorMode == ErrorModePropagate {
		return
	}
	r.settings.Logger.Error("RDMA tracing cannot start.", zap.Error(err))
	r.shown.fail(err)
	r.status.report(componentstatus.NewPermanentErrorEvent(err))
	r.exportDevices(tracing, delivery, self)
}

// open starts the engine and connects it.
func (r *rdmaReceiver) open(ctx context.Context, self *selfTelemetry) (*session, error) {
	logger := slog.New(zapslog.NewHandler(r.settings.Logger.Core()))
	host, err := r.platform.openHost(r.cfg.RootPath, logger)
	if err != nil {
		return nil, err
	}
	version := scopeVersion(r.settings.BuildInfo)
	r.shown.name(host.facts, version)
	started, err := r.platform.startEngine(ctx, r.engineConfig(host, logger))
	if err != nil {
		return nil, err
	}
	in := surroundings{
		host: host.facts, topology: host.topology, peerAddresses: r.cfg.PeerAddresses,
		version: version,
	}
	s := &session{
		cfg: r.cfg, engine: started, host: host, in: in, shown: r.shown,
		pipelines: r.pipelines, self: self, status: &r.status, holdup: &r.holdup, logger: r.settings.Logger,
		readClocks: r.platform.readClocks, causeTable: r.platform.causes,
		emitter: newMetricsEmitter(r.cfg, r.settings, in),
	}
	if host.watchDevices != nil {
		source := host.watchDevices(r.cfg.Devices.matcher(), r.cfg.Counters.matcher())
		s.devices = newDeviceWatch(source, r.cfg.CollectionInterval, s.monotonic)
		s.deviceEmitter = newDeviceEmitter(r.cfg, r.settings, in)
	}
	if err := s.prepare(r.platform.errnoName); err != nil {
		return nil, errors.Join(err, started.Close())
	}
	return s, nil
}

func (r *rdmaReceiver) engineConfig(host host, logger *slog.Logger) engineConfig {
	cfg := engineConfig{
		Threshold:         r.cfg.Threshold,
		MaxMapBytes:       uint64(r.cfg.MaxMapMiB) << 20,
		EntryReturn:       r.cfg.ProbeMode == ProbeModeWindows,
		CQETimestamps:     r.cfg.CQETimestamps,
		MaxThreadCPURatio: r.cfg.MaxThreadCPURatio,
		MaxAgentCPUCores:  r.cfg.MaxAgentCPUCores,
		Root:              r.cfg.RootPath,
		CacheDirectory:    r.cfg.CacheDirectory,
		NewProcess:        host.processes.Capture,
		Rate:              host.rate,
		Logger:            logger,
	}
	if takes := r.cfg.Processes.matcher(); takes != nil {
		cfg.TakesProcess = func(pid int) bool { return takes(host.executable(pid)) }
		cfg.TakesConsumer = takes
	}
	cfg.TakesDevice = r.cfg.Devices.matcher()
	return cfg
}

// scopeVersion is the version of this module in the collector's build. Where the
// module has none, since it was built from a directory, it is that of the collector.
func scopeVersion(collector component.BuildInfo) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return collector.Version
	}
	return moduleVersion(info.Deps, collector.Version)
}

// developed is what the go command calls the version of a module of its workspace, and
// since 1.26 of a directory that takes the place of a module.
const developed = "(devel)"

func moduleVersion(dependencies []*debug.Module, otherwise string) string {
	for _, dependency := range dependencies {
		switch {
		case dependency.Path != modulePath:
		case dependency.Replace != nil:
			return released(dependency.Replace, otherwise)
		default:
			return released(dependency, otherwise)
		}
	}
	return otherwise
}

// released is the version of a module, otherwise where it is a directory.
func released(module *debug.Module, otherwise string) string {
	if module.Version == developed {
		return otherwise
	}
	return cmp.Or(module.Version, otherwise)
}

// shutdown ends tracing with the first of the components: from then on not all
// pipelines can take data. It may be called before start and again after.
func (r *rdmaReceiver) shutdown(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	running := r.phase == phaseRunning
	r.phase = phaseStopped
	defer r.instances.release(r)
	defer r.shown.end()
	if !running {
		return nil
	}
	r.drain(ctx)
	return nil
}

// drain gives the pipelines some time to take what is left. What does not end then is
// left behind, and is no error: the collector that loads its configuration again would
// end by it. A receiver that starts meanwhile counts in maps of its own, and this one
// exports nothing more.
func (r *rdmaReceiver) drain(ctx context.Context) {
	defer r.giveUp()
	r.stop()
	if r.wait(ctx) {
		return
	}
	r.giveUp()
	if r.wait(context.WithoutCancel(ctx)) {
		return
	}
	r.settings.Logger.Error("The rdma receiver did not end in time and is left behind. Its probes cost, until they are off; "+
		"where that lasts, restart the collector.", zap.String("waits_for", r.holdup.String()), zap.Duration("waited", 2*drainTime))
}

// wait reports whether everything has ended, within the time to drain.
func (r *rdmaReceiver) wait(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	select {
	case <-r.done:
		return true
	case <-ctx.Done():
		return false
	}
}
