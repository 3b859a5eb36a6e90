package rdmareceiver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// slowToClose is an engine whose probes do not come off before the gate opens.
type slowToClose struct {
	*handEngine
	gate <-chan struct{}
}

func (e slowToClose) Close() error {
	<-e.gate
	return e.handEngine.Close()
}

// What does not end in time is named in the log and left behind: an error would end the
// collector that loads its configuration again, and the receiver that comes after it
// would not start.
func TestWhatDoesNotEndIsLeftBehind(t *testing.T) {
	for _, tc := range []struct {
		name string
		// hold lets something wait for the gate, whatever becomes of its context.
		hold     func(t *testing.T, r *rig, gate <-chan struct{})
		starting bool
		want     string
	}{
		{"a traces pipeline", func(t *testing.T, r *rig, gate <-chan struct{}) {
			held, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error { <-gate; return nil })
			require.NoError(t, err)
			r.addTraces(held)
		}, false, "the traces pipeline"},
		{"a metrics pipeline", func(t *testing.T, r *rig, gate <-chan struct{}) {
			held, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { <-gate; return nil })
			require.NoError(t, err)
			r.addMetrics(held)
		}, false, "the metrics pipeline"},
		{"the start", func(_ *testing.T, r *rig, gate <-chan struct{}) {
			p := handPlatform(nil)
			p.startEngine = func(context.Context, engineConfig) (engine, error) { <-gate; return r.engine, nil }
			r.factory = newFactory(p)
			r.addTraces(r.traces)
		}, true, "the start of tracing, which attaches the probes"},
		{"the probes", func(_ *testing.T, r *rig, gate <-chan struct{}) {
			p := handPlatform(nil)
			p.startEngine = func(context.Context, engineConfig) (engine, error) { return slowToClose{r.engine, gate}, nil }
			r.factory = newFactory(p)
			r.addTraces(r.traces)
		}, false, "the kernel, which takes the probes off"},
		{"nothing", func(_ *testing.T, r *rig, _ <-chan struct{}) { r.addTraces(r.traces) }, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logged := observer.New(zapcore.ErrorLevel)
				gate := make(chan struct{})
				r := newRig(t)
				r.logger = zap.New(core)
				r.engine.set(fullSnapshot(), nil)
				tc.hold(t, r, gate)
				r.start()
				if !tc.starting {
					r.engine.completions <- fullCompletion()
				}
				time.Sleep(15 * time.Second)
				began := time.Now()
				r.shutdown()
				if tc.want == "" {
					assert.Empty(t, logged.All())
					close(gate)
					return
				}
				assert.Equal(t, 2*drainTime, time.Since(began))
				require.Equal(t, 1, logged.Len())
				assert.Equal(t, tc.want, logged.All()[0].ContextMap()["waits_for"])

				// The collector makes its factories anew when it is told to load.
				next := newRig(t)
				next.addTraces(next.traces)
				next.start()
				next.engine.completions <- fullCompletion()
				time.Sleep(2 * time.Second)
				assert.Equal(t, 1, next.traces.SpanCount(), "the one that comes after it traces")
				next.shutdown()
				close(gate)
				synctest.Wait()
				assert.Equal(t, 1, r.engine.timesClosed(), "what was left behind still ends")
			})
		})
	}
}
