package rdmareceiver

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// moodyTraces takes batches, refuses them, for now or for good, or is slow to.
type moodyTraces struct {
	consumertest.TracesSink
	mu     sync.Mutex
	random *rand.Rand
}

func (m *moodyTraces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	m.mu.Lock()
	mood, wait := m.random.IntN(6), time.Duration(m.random.IntN(4000))*time.Millisecond
	m.mu.Unlock()
	switch mood {
	case 0:
		return errRefused
	case 1:
		return consumererror.NewPermanent(errRefused)
	case 2:
		if !pause(ctx, wait) {
			return ctx.Err()
		}
	}
	return m.TracesSink.ConsumeTraces(ctx, td)
}

// causesOfSpans are the causes by when the spans end, which tells them apart.
func causesOfSpans(all []ptrace.Traces) map[pcommon.Timestamp]any {
	causes := map[pcommon.Timestamp]any{}
	for _, traces := range all {
		for i := range traces.ResourceSpans().Len() {
			spans := traces.ResourceSpans().At(i).ScopeSpans().At(0).Spans()
			for j := range spans.Len() {
				causes[spans.At(j).EndTimestamp()] = spans.At(j).Attributes().AsRaw()[attributeSlowCause]
			}
		}
	}
	return causes
}

// Whatever a pipeline does, and whenever the collector ends, each slow completion has
// one outcome in each signal, is exported at most once, and under one cause.
func TestSlowCompletionsAreExportedOnce(t *testing.T) {
	for seed := range uint64(15) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 11))
			r := newRig(t)
			r.telemetry = componenttest.NewTelemetry()
			r.platform.causes = theCauses()
			r.factory = newFactory(r.platform)
			r.cfg.SlowLogs = true
			r.cfg.MaxExportedPerSecond = 1 + random.IntN(20)
			moody := &moodyTraces{random: rand.New(rand.NewPCG(seed, 12))}
			r.addTraces(moody)
			r.addLogs(r.logs)
			r.start()
			synctest.Wait()
			delivered := 0
			for range random.IntN(60) {
				for range random.IntN(30) {
					stage := []verbs.Stage{verbs.StagePoll, verbs.StageDevice, verbs.StagePost}[random.IntN(3)]
					c := slowIn(stage, []verbs.ProcessID{trainer, peer}[random.IntN(2)], uint32(stage))
					c.Posted += uint64(delivered) * uint64(time.Microsecond)
					c.Delivered += uint64(delivered) * uint64(time.Microsecond)
					delivered++
					r.engine.completions <- c
				}
				time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
			}
			r.shutdown()

			outcomes := map[string]float64{}
			if delivered > 0 {
				outcomes = told(t, r.telemetry, "rdma_events", "signal", "outcome")
			}
			of := func(signal string, some ...outcome) (n int) {
				for _, o := range some {
					n += int(outcomes[signal+" "+string(o)])
				}
				return n
			}
			assert.Equal(t, delivered, of("traces", outcomeExported, outcomeRefused, outcomeQueueFull, outcomeRateLimited), "seed %d: %v", seed, outcomes)
			spans := causesOfSpans(moody.AllTraces())
			require.Len(t, spans, moody.SpanCount(), "seed %d: none is exported twice", seed)
			logs := map[pcommon.Timestamp]any{}
			for _, record := range recordsOf(r.logs, eventSlow) {
				assert.NotContains(t, logs, record.Timestamp(), "seed %d", seed)
				logs[record.Timestamp()] = attributesOf(record)[attributeSlowCause]
			}
			for at, cause := range spans {
				assert.Equal(t, cause, logs[at], "seed %d: a span and its log record", seed)
			}
			assert.Equal(t, moody.SpanCount(), of("traces", outcomeExported), "seed %d", seed)
			require.NoError(t, r.telemetry.Shutdown(context.Background()))
		})
	}
}
