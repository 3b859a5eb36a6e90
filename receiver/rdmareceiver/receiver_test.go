package rdmareceiver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// watchingHost keeps the status that components report.
type watchingHost struct {
	component.Host
	mu     sync.Mutex
	events []*componentstatus.Event
}

func newWatchingHost() *watchingHost {
	return &watchingHost{Host: componenttest.NewNopHost()}
}

func (h *watchingHost) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

func (h *watchingHost) last() *componentstatus.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.events) == 0 {
		return nil
	}
	return h.events[len(h.events)-1]
}

// rig is a collector's worth of one receiver: three signals on one engine.
type rig struct {
	t          *testing.T
	factory    receiver.Factory
	platform   platform
	cfg        *Config
	engine     *handEngine
	host       *watchingHost
	traces     *consumertest.TracesSink
	logs       *consumertest.LogsSink
	metrics    *consumertest.MetricsSink
	components []component.Component
	// telemetry receives the receiver's own metrics, if it is set.
	telemetry *componenttest.Telemetry
	// logger receives what the receiver logs, if it is set.
	logger *zap.Logger
}

func (r *rig) settings() receiver.Settings {
	settings := receivertest.NewNopSettings(metadata.Type)
	if r.telemetry != nil {
		settings.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	}
	if r.logger != nil {
		settings.Logger = r.logger
	}
	return settings
}

func newRig(t *testing.T) *rig {
	e := newHandEngine()
	p := handPlatform(e)
	return &rig{
		t: t, engine: e, factory: newFactory(p), platform: p, cfg: createDefaultConfig().(*Config), host: newWatchingHost(),
		traces: &consumertest.TracesSink{}, logs: &consumertest.LogsSink{}, metrics: &consumertest.MetricsSink{},
	}
}

func (r *rig) addTraces(next consumer.Traces) {
	c, err := r.factory.CreateTraces(r.t.Context(), r.settings(), r.cfg, next)
	require.NoError(r.t, err)
	r.components = append(r.components, c)
}

func (r *rig) addLogs(next consumer.Logs) {
	c, err := r.factory.CreateLogs(r.t.Context(), r.settings(), r.cfg, next)
	require.NoError(r.t, err)
	r.components = append(r.components, c)
}

func (r *rig) addMetrics(next consumer.Metrics) {
	c, err := r.factory.CreateMetrics(r.t.Context(), r.settings(), r.cfg, next)
	require.NoError(r.t, err)
	r.components = append(r.components, c)
}

// start starts the components with a context that ends when they have started,
// as that of a collector may.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	for _, c := range r.components {
		require.NoError(r.t, c.Start(ctx, r.host))
	}
}

func (r *rig) shutdown() {
	for _, c := range r.components {
		require.NoError(r.t, c.Shutdown(context.Background()))
	}
}

func TestSlowCompletionBecomesASpanOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addTraces(r.traces)
		r.addLogs(r.logs)
		r.addMetrics(r.metrics)
		r.start()
		r.engine.completions <- fullCompletion()
		time.Sleep(2 * time.Second)
		assert.Equal(t, 1, r.traces.SpanCount(), "exported within two seconds")
		time.Sleep(time.Minute)
		r.shutdown()
		assert.Equal(t, 1, r.traces.SpanCount(), "and never again")
		assert.Empty(t, recordsOf(r.logs, eventSlow), "the span says it all")
		assert.Equal(t, 1, r.engine.timesClosed())
	})
}

func TestSlowLogs(t *testing.T) {
	for _, tc := range []struct {
		name   string
		traces bool
		change func(*Config)
		want   int
	}{
		{"without traces they are on", false, func(*Config) {}, 1},
		{"with traces they are off", true, func(*Config) {}, 0},
		{"with traces by option", true, func(c *Config) { c.SlowLogs = true }, 1},
		{"the event switched off", false, func(c *Config) { c.Events.RdmaWqeSlow.Enabled = false }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				tc.change(r.cfg)
				r.addLogs(r.logs)
				if tc.traces {
					r.addTraces(r.traces)
				}
				r.start()
				r.engine.completions <- fullCompletion()
				time.Sleep(2 * time.Second)
				r.shutdown()
				assert.Len(t, recordsOf(r.logs, eventSlow), tc.want)
			})
		})
	}
}

func TestSlowLogHasTheIdsOfTheSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.SlowLogs = true
		r.addLogs(r.logs)
		r.addTraces(r.traces)
		r.start()
		r.engine.completions <- fullCompletion()
		time.Sleep(2 * time.Second)
		r.shutdown()
		record := recordsOf(r.logs, eventSlow)[0]
		span := r.traces.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		assert.Equal(t, span.TraceID(), record.TraceID())
		assert.Equal(t, span.SpanID(), record.SpanID())
	})
}

func TestStuckSendBecomesALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addLogs(r.logs)
		r.addTraces(r.traces)
		r.start()
		for range 200 {
			r.engine.stuck <- theStuck()
		}
		time.Sleep(2 * time.Second)
		r.shutdown()
		assert.Len(t, recordsOf(r.logs, eventStuck), 50, "a burst at most")
	})
}

// An asynchronous event does not wait for a window, nor for what is slow.
func TestAsyncEventBecomesALogAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addLogs(r.logs)
		r.addTraces(r.traces)
		r.start()
		r.engine.async <- portDown()
		synctest.Wait()
		assert.Equal(t, 1, r.logs.LogRecordCount(), "before any time has passed")
		for range 200 {
			r.engine.async <- overrun()
			synctest.Wait()
		}
		assert.Equal(t, 50, r.logs.LogRecordCount(), "a burst at most")
		time.Sleep(2 * time.Second)
		r.engine.async <- portDown()
		synctest.Wait()
		assert.Equal(t, 51, r.logs.LogRecordCount(), "and the next in the next window")
		r.shutdown()
	})
}

func TestAsyncEventsCanBeSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.Events.RdmaAsyncEvent.Enabled = false
		r.addLogs(r.logs)
		r.start()
		r.engine.async <- portDown()
		r.shutdown()
		assert.Zero(t, r.logs.LogRecordCount())
	})
}

func TestMetricsEveryIntervalAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addMetrics(r.metrics)
		r.engine.set(fullSnapshot(), nil)
		r.start()
		time.Sleep(35 * time.Second)
		assert.Len(t, r.metrics.AllMetrics(), 3)
		r.shutdown()
		assert.Len(t, r.metrics.AllMetrics(), 4)
	})
}

func TestExemplarLeadsToAnExportedSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addMetrics(r.metrics)
		r.addTraces(r.traces)
		r.engine.set(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 5, 450*time.Microsecond)}}, nil)
		r.start()
		r.engine.completions <- fullCompletion()
		time.Sleep(15 * time.Second)
		r.shutdown()
		var found []pmetric.Exemplar
		eachMetric(r.metrics.AllMetrics()[0], func(_ pcommon.Resource, metric pmetric.Metric) {
			if metric.Name() == "rdma.wqe.duration" {
				exemplars := metric.ExponentialHistogram().DataPoints().At(0).Exemplars()
				for i := range exemplars.Len() {
					found = append(found, exemplars.At(i))
				}
			}
		})
		require.Len(t, found, 1)
		span := r.traces.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		assert.Equal(t, span.SpanID(), found[0].SpanID())
	})
}

func TestRefusedSpansAreNoExemplars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addMetrics(r.metrics)
		r.addTraces(consumertest.NewErr(errRefused))
		r.engine.set(verbs.Snapshot{Series: []verbs.Series{seriesOf(trainer, 5, 450*time.Microsecond)}}, nil)
		r.start()
		r.engine.completions <- fullCompletion()
		time.Sleep(15 * time.Second)
		r.shutdown()
		eachMetric(r.metrics.AllMetrics()[0], func(_ pcommon.Resource, metric pmetric.Metric) {
			if metric.Name() == "rdma.wqe.duration" {
				assert.Zero(t, metric.ExponentialHistogram().DataPoints().At(0).Exemplars().Len())
			}
		})
	})
}

// flakyTraces refuses the first few batches.
type flakyTraces struct {
	consumertest.TracesSink
	refusals int
	err      error
	attempts int
}

func (f *flakyTraces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	f.attempts++
	if f.attempts <= f.refusals {
		// A consumer may change what it is given, and fail then.
		td.ResourceSpans().RemoveIf(func(ptrace.ResourceSpans) bool { return true })
		return f.err
	}
	return f.TracesSink.ConsumeTraces(ctx, td)
}

func TestRefusal(t *testing.T) {
	for _, tc := range []struct {
		name            string
		refusals        int
		err             error
		spans, attempts int
	}{
		{"that passes is retried", 2, errRefused, 1, 3},
		{"that stays is given up", 100, errRefused, 0, 4},
		{"that is permanent is not retried", 100, consumererror.NewPermanent(errRefused), 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				flaky := &flakyTraces{refusals: tc.refusals, err: tc.err}
				r.addTraces(flaky)
				r.start()
				r.engine.completions <- fullCompletion()
				time.Sleep(10 * time.Second)
				r.shutdown()
				assert.Equal(t, tc.spans, flaky.SpanCount())
				assert.Equal(t, tc.attempts, flaky.attempts)
			})
		})
	}
}

// stuckTraces takes a batch and never comes back, until its context ends.
type stuckTraces struct{ consumertest.Consumer }

func (stuckTraces) ConsumeTraces(ctx context.Context, _ ptrace.Traces) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestStuckPipelineNeverStallsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addTraces(stuckTraces{consumertest.NewNop()})
		r.addLogs(r.logs)
		r.start()
		began := time.Now()
		for range 100 {
			for range 1000 {
				r.engine.completions <- fullCompletion()
			}
			time.Sleep(time.Second)
		}
		assert.Equal(t, 100*time.Second, time.Since(began), "no send had to wait")
		r.engine.stuck <- theStuck()
		time.Sleep(2 * time.Second)
		assert.Len(t, recordsOf(r.logs, eventStuck), 1, "other pipelines go on")
		began = time.Now()
		r.shutdown()
		assert.LessOrEqual(t, time.Since(began), 2*drainTime)
		assert.Equal(t, 1, r.engine.timesClosed())
	})
}

func TestSecondInstanceFailsUntilTheFirstIsGone(t *testing.T) {
	factory := newFactory(handPlatform(newHandEngine()))
	create := func(name string) receiver.Traces {
		settings := receivertest.NewNopSettings(metadata.Type)
		settings.ID = component.MustNewIDWithName("rdma", name)
		c, err := factory.CreateTraces(t.Context(), settings, createDefaultConfig(), consumertest.NewNop())
		require.NoError(t, err)
		return c
	}
	first, second, third := create("first"), create("second"), create("third")
	require.NoError(t, first.Start(t.Context(), componenttest.NewNopHost()))
	err := second.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, `receiver "rdma/second" cannot run beside receiver "rdma/first"`)
	require.ErrorContains(t, err, `remove "rdma/second"`)
	require.NoError(t, second.Shutdown(t.Context()))
	require.NoError(t, first.Shutdown(t.Context()))
	require.NoError(t, third.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, third.Shutdown(t.Context()))
}

func TestReloadWithTheSameFactory(t *testing.T) {
	engines := 0
	p := handPlatform(nil)
	p.startEngine = func(context.Context, engineConfig) (engine, error) {
		engines++
		return newHandEngine(), nil
	}
	factory := newFactory(p)
	for range 3 {
		cfg := createDefaultConfig()
		traces, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		metrics, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, metrics.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, traces.Shutdown(t.Context()))
		require.NoError(t, metrics.Shutdown(t.Context()))
		require.Error(t, metrics.Start(t.Context(), componenttest.NewNopHost()), "what was shut down stays so")
	}
	assert.Equal(t, 3, engines)
}

func TestShutdownUnstartedAndTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addTraces(r.traces)
		r.shutdown()
		r.shutdown()
		assert.Zero(t, r.engine.timesClosed())

		r = newRig(t)
		r.addTraces(r.traces)
		r.addLogs(r.logs)
		r.start()
		synctest.Wait()
		r.shutdown()
		r.shutdown()
		assert.Equal(t, 1, r.engine.timesClosed())
	})
}

func TestStartDoesNotWaitForTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := handPlatform(nil)
		p.startEngine = func(ctx context.Context, _ engineConfig) (engine, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r := newRig(t)
		r.factory = newFactory(p)
		r.addTraces(r.traces)
		began := time.Now()
		r.start()
		r.shutdown()
		assert.Zero(t, time.Since(began))
		assert.Nil(t, r.host.last(), "being stopped is no error")
	})
}

// To list queue pairs may be a command to the firmware for each of them.
func TestNothingWaitsForTheListOfQueuePairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		listed := make(chan struct{})
		p := handPlatform(r.engine)
		p.openHost = func(string, *slog.Logger) (host, error) {
			h := theHost()
			h.listQueuePairs = func() { <-listed }
			return h, nil
		}
		r.factory = newFactory(p)
		r.cfg.ErrorMode = ErrorModePropagate
		r.addTraces(r.traces)
		r.start()
		r.engine.completions <- fullCompletion()
		time.Sleep(2 * time.Second)
		assert.Equal(t, 1, r.traces.SpanCount())
		close(listed)
		r.shutdown()
	})
}

func TestEngineThatStartsTooLateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := handPlatform(nil)
		p.startEngine = func(ctx context.Context, _ engineConfig) (engine, error) {
			<-ctx.Done()
			return r.engine, nil
		}
		r.factory = newFactory(p)
		r.addTraces(r.traces)
		r.start()
		r.shutdown()
		assert.Equal(t, 1, r.engine.timesClosed())
	})
}

func TestEngineThatCannotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := handPlatform(nil)
		p.startEngine = func(context.Context, engineConfig) (engine, error) { return nil, errNoBPF }
		r := newRig(t)
		r.factory = newFactory(p)
		r.addTraces(r.traces)
		r.addMetrics(r.metrics)
		require.NoError(t, r.components[0].Start(t.Context(), r.host))
		synctest.Wait()
		require.NotNil(t, r.host.last())
		assert.Equal(t, componentstatus.StatusPermanentError, r.host.last().Status())
		require.ErrorContains(t, r.host.last().Err(), "CAP_BPF")
		// The component that starts later hears of it too.
		late := newWatchingHost()
		require.NoError(t, r.components[1].Start(t.Context(), late))
		require.NotNil(t, late.last())
		assert.Equal(t, componentstatus.StatusPermanentError, late.last().Status())
		r.shutdown()
	})
}

func TestPropagate(t *testing.T) {
	forever := func(ctx context.Context, _ engineConfig) (engine, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, tc := range []struct {
		name  string
		start func(context.Context, engineConfig) (engine, error)
		want  error
	}{
		{"a failure is that of the start", func(context.Context, engineConfig) (engine, error) { return nil, errNoBPF }, errNoBPF},
		{"the start takes no longer than it may", forever, context.DeadlineExceeded},
		{"the probes are there when it returns", func(context.Context, engineConfig) (engine, error) {
			time.Sleep(time.Second)
			return newHandEngine(), nil
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := handPlatform(nil)
				p.startEngine = tc.start
				r := newRig(t)
				r.factory = newFactory(p)
				r.cfg.ErrorMode = ErrorModePropagate
				r.addTraces(r.traces)
				r.addMetrics(r.metrics)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				began := time.Now()
				require.ErrorIs(t, r.components[0].Start(ctx, r.host), tc.want)
				if tc.want == nil {
					assert.Equal(t, time.Second, time.Since(began))
					require.NoError(t, r.components[1].Start(ctx, r.host))
				}
				assert.Nil(t, r.host.last(), "the collector reports a failed start itself")
				r.shutdown()
			})
		})
	}
}

func TestUnreadableSnapshotIsRecoverable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addMetrics(r.metrics)
		r.engine.set(verbs.Snapshot{}, errors.New("map lookup failed"))
		r.start()
		time.Sleep(15 * time.Second)
		require.NotNil(t, r.host.last())
		assert.Equal(t, componentstatus.StatusRecoverableError, r.host.last().Status())
		r.engine.set(fullSnapshot(), nil)
		time.Sleep(10 * time.Second)
		assert.Equal(t, componentstatus.StatusOK, r.host.last().Status())
		r.shutdown()
		assert.NotEmpty(t, r.metrics.AllMetrics())
	})
}

// A capability without which some processes are not seen is told once, and the
// rest is measured.
func TestImpairedEngineIsRecoverable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addMetrics(r.metrics)
		r.engine.set(fullSnapshot(), nil)
		r.engine.impaired = errors.New("tracing every process needs CAP_SYS_PTRACE")
		r.start()
		time.Sleep(time.Minute)
		r.shutdown()
		r.host.mu.Lock()
		defer r.host.mu.Unlock()
		require.Len(t, r.host.events, 1)
		assert.Equal(t, componentstatus.StatusRecoverableError, r.host.events[0].Status())
		require.ErrorContains(t, r.host.events[0].Err(), "CAP_SYS_PTRACE")
		assert.NotEmpty(t, r.metrics.AllMetrics())
	})
}

func TestEngineGetsTheConfiguration(t *testing.T) {
	var got engineConfig
	p := handPlatform(nil)
	p.startEngine = func(_ context.Context, cfg engineConfig) (engine, error) {
		got = cfg
		return newHandEngine(), nil
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.factory = newFactory(p)
		r.cfg.Threshold, r.cfg.MaxMapMiB, r.cfg.RootPath = time.Millisecond, 64, "/host"
		r.cfg.CacheDirectory = "/var/cache/rdma"
		r.cfg.MaxThreadCPURatio, r.cfg.MaxAgentCPUCores, r.cfg.ProbeMode = 0.2, 0.3, ProbeModeWindows
		r.cfg.CQETimestamps = true
		r.cfg.Devices.Exclude = filters("mlx5_bond_0", "")
		r.cfg.Processes.Include = filters("", "^py")
		r.addTraces(r.traces)
		r.start()
		synctest.Wait()
		r.shutdown()
	})
	assert.Equal(t, time.Millisecond, got.Threshold)
	assert.EqualValues(t, 64<<20, got.MaxMapBytes)
	assert.Equal(t, "/host", got.Root)
	assert.Equal(t, "/var/cache/rdma", got.CacheDirectory)
	assert.InDelta(t, 0.2, got.MaxThreadCPURatio, 0)
	assert.InDelta(t, 0.3, got.MaxAgentCPUCores, 0)
	assert.True(t, got.EntryReturn, "probe_mode is windows")
	assert.True(t, got.CQETimestamps)
	assert.False(t, got.TakesDevice("mlx5_bond_0"))
	assert.True(t, got.TakesDevice("mlx5_0"))
	assert.True(t, got.TakesProcess(1), "its executable is python3")
	assert.True(t, got.TakesConsumer("pynfs"))
	assert.False(t, got.TakesConsumer("nvme_rdma"))
	rate, known := got.Rate("mlx5_0")
	assert.True(t, known)
	assert.InDelta(t, 50e9, rate, 0)
	assert.NotNil(t, got.Logger)
}

// capturingProcesses keeps which processes were to be read at once.
type capturingProcesses struct {
	listedProcesses
	mu       sync.Mutex
	captured []verbs.ProcessID
}

func (p *capturingProcesses) Capture(id verbs.ProcessID, _ string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.captured = append(p.captured, id)
}

// A process may end within the second in which its completion waits.
func TestFactsAreReadWhenACompletionArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		processes := &capturingProcesses{listedProcesses: theHost().processes.(listedProcesses)}
		p := handPlatform(r.engine)
		p.openHost = func(string, *slog.Logger) (host, error) {
			h := theHost()
			h.processes = processes
			return h, nil
		}
		r.factory = newFactory(p)
		r.addTraces(r.traces)
		r.addLogs(r.logs)
		r.start()
		r.engine.completions <- fullCompletion()
		hanging := theStuck()
		hanging.Queue.Process = peer
		r.engine.stuck <- hanging
		synctest.Wait()
		processes.mu.Lock()
		assert.Equal(t, []verbs.ProcessID{trainer, peer}, processes.captured)
		processes.mu.Unlock()
		r.shutdown()
	})
}

// gatedLogs fails the test when it is used before its pipeline has started or
// after it has ended.
type gatedLogs struct {
	consumertest.LogsSink
	t      *testing.T
	mu     sync.Mutex
	closed bool
}

func (g *gatedLogs) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	assert.False(g.t, g.closed, "a pipeline that does not run was given data")
	return g.LogsSink.ConsumeLogs(ctx, logs)
}

func TestPipelinesGetNothingOutsideTheirLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		logs := &gatedLogs{t: t, closed: true}
		r.addMetrics(r.metrics)
		r.addLogs(logs)
		require.NoError(t, r.components[0].Start(t.Context(), r.host))
		r.engine.completions <- fullCompletion()
		time.Sleep(2 * time.Second)
		logs.mu.Lock()
		logs.closed = false
		logs.mu.Unlock()
		require.NoError(t, r.components[1].Start(t.Context(), r.host))
		r.engine.completions <- fullCompletion()
		time.Sleep(2 * time.Second)
		assert.Len(t, recordsOf(&logs.LogsSink, eventSlow), 1)
		require.NoError(t, r.components[1].Shutdown(context.Background()))
		logs.mu.Lock()
		logs.closed = true
		logs.mu.Unlock()
		require.NoError(t, r.components[0].Shutdown(context.Background()))
	})
}
