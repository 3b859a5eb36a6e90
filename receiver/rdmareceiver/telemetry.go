package rdmareceiver

import (
	"context"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// outcomeRateLimited is what becomes of completions over the budget.
const outcomeRateLimited outcome = "rate_limited"

// selfTelemetry is what the receiver tells of itself. It is safe for concurrent
// use.
type selfTelemetry struct {
	builder *metadata.TelemetryBuilder

	mu       sync.Mutex
	snapshot verbs.Snapshot
	floors   map[string]time.Duration
	series   int
}

func newSelfTelemetry(settings component.TelemetrySettings) (*selfTelemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	t := &selfTelemetry{builder: builder}
	if err := t.register(); err != nil {
		builder.Shutdown()
		return nil, err
	}
	return t, nil
}

// register hooks up what is read when it is asked for.
func (t *selfTelemetry) register() error {
	for _, register := range []func() error{
		func() error { return t.builder.RegisterRdmaCompletionsCallback(t.observeCompletions) },
		func() error { return t.builder.RegisterRdmaCompletionsSeenCallback(t.observeCompletionsSeen) },
		func() error { return t.builder.RegisterRdmaLossesCallback(t.observeLosses) },
		func() error { return t.builder.RegisterRdmaProbesCallback(t.observeProbes) },
		func() error { return t.builder.RegisterRdmaReportingFloorCallback(t.observeFloors) },
		func() error { return t.builder.RegisterRdmaSeriesCallback(t.observeSeries) },
		func() error { return t.builder.RegisterRdmaWqesCallback(t.observeWQEs) },
		func() error { return t.builder.RegisterRdmaWqesPostedCallback(t.observeWQEsPosted) },
	} {
		if err := register(); err != nil {
			return err
		}
	}
	return nil
}

func (t *selfTelemetry) shutdown() { t.builder.Shutdown() }

// keep takes the parts of a snapshot that are told from now on.
func (t *selfTelemetry) keep(snap *verbs.Snapshot, series int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.snapshot = verbs.Snapshot{WQEs: snap.WQEs, Completions: snap.Completions, Losses: snap.Losses, Probes: snap.Probes}
	t.series = series
}

func (t *selfTelemetry) keepFloors(floors map[string]time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.floors = floors
}

func (t *selfTelemetry) countEvents(signal string, n int, o outcome) {
	if n > 0 {
		t.addEvents(signal, n, o)
	}
}

// expectDrops has what is dropped counted from nothing on: a series that begins with the
// first drop has no increase by it, and no alert says so.
func (t *selfTelemetry) expectDrops(signal string) {
	t.addEvents(signal, 0, outcomeQueueFull)
	t.addEvents(signal, 0, outcomeRefused)
}

func (t *selfTelemetry) addEvents(signal string, n int, o outcome) {
	t.builder.RdmaEvents.Add(context.Background(), int64(n), metric.WithAttributes(
		attribute.String("signal", signal), attribute.String("outcome", string(o))))
}

// Why something is not judged.
const (
	// unjudgedFull is that too many queue pairs are slow at once.
	unjudgedFull = "queues"
	// unjudgedLate is that the verdicts come too slowly.
	unjudgedLate = "late"
	// unjudgedEnding is that the receiver ends.
	unjudgedEnding = "ending"
)

func (t *selfTelemetry) countUnjudged(n int, why string) {
	if n > 0 {
		t.builder.RdmaUnjudged.Add(context.Background(), int64(n), metric.WithAttributes(attribute.String("reason", why)))
	}
}

// countBeyond counts slow completions that are in no incident for want of room.
func (t *selfTelemetry) countBeyond(n uint64) {
	if n > 0 {
		t.builder.RdmaIncidentsBeyond.Add(context.Background(), int64(n))
	}
}

// countMinor counts slow completions that were too little for an incident.
func (t *selfTelemetry) countMinor(n uint64) {
	if n > 0 {
		t.builder.RdmaIncidentsMinor.Add(context.Background(), int64(n))
	}
}

func (t *selfTelemetry) countDroppedMetrics(o outcome) {
	t.builder.RdmaMetricBatchesDropped.Add(context.Background(), 1, metric.WithAttributes(attribute.String("reason", string(o))))
}

func (t *selfTelemetry) recordDelay(delay time.Duration) {
	t.builder.RdmaEventDelay.Record(context.Background(), secondsOf(max(delay, 0)))
}

func (t *selfTelemetry) latest() (verbs.Snapshot, map[string]time.Duration, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshot, maps.Clone(t.floors), t.series
}

func (t *selfTelemetry) observeCompletions(_ context.Context, to metric.Int64Observer) error {
	snap, _, _ := t.latest()
	for fate, n := range map[string]uint64{
		"matched": snap.Completions.Matched, "received": snap.Completions.Received,
		"unsynced": snap.Completions.Unsynced, "before_attach": snap.Completions.BeforeAttach,
		"duplicate": snap.Completions.Duplicate, "ambiguous": snap.Completions.Ambiguous,
		"unmatched": snap.Completions.Unmatched,
	} {
		to.Observe(int64(n), metric.WithAttributes(attribute.String("fate", fate)))
	}
	return nil
}

func (t *selfTelemetry) observeCompletionsSeen(_ context.Context, to metric.Int64Observer) error {
	snap, _, _ := t.latest()
	to.Observe(int64(snap.Completions.Seen))
	return nil
}

func (t *selfTelemetry) observeLosses(_ context.Context, to metric.Int64Observer) error {
	snap, _, _ := t.latest()
	for reason, n := range snap.Losses {
		to.Observe(int64(n), metric.WithAttributes(attribute.String("reason", reason)))
	}
	return nil
}

// observeProbes adds up libraries that are probed in the same way.
func (t *selfTelemetry) observeProbes(_ context.Context, to metric.Int64Observer) error {
	snap, _, _ := t.latest()
	functions := map[attribute.Set]int64{}
	for _, p := range snap.Probes {
		for _, function := range p.Functions {
			functions[attribute.NewSet(
				attribute.String("provider", p.Provider), attribute.String("function", function),
				attribute.String("mode", p.Mode), attribute.String("link", p.Link),
			)]++
		}
	}
	for set, n := range functions {
		to.Observe(n, metric.WithAttributeSet(set))
	}
	return nil
}

func (t *selfTelemetry) observeFloors(_ context.Context, to metric.Float64Observer) error {
	_, floors, _ := t.latest()
	for device, floor := range floors {
		to.Observe(secondsOf(floor), metric.WithAttributes(attribute.String(attributeDevice, device)))
	}
	return nil
}

func (t *selfTelemetry) observeSeries(_ context.Context, to metric.Int64Observer) error {
	_, _, series := t.latest()
	to.Observe(int64(series))
	return nil
}

func (t *selfTelemetry) observeWQEs(_ context.Context, to metric.Int64Observer) error {
	snap, _, _ := t.latest()
	for fate, n := range map[string]uint64{
		"delivered": snap.WQEs.Delivered, "retired": snap.WQEs.Retired,
		"undone": snap.WQEs.Undone, "outstanding": snap.WQEs.Outstanding,
	} {
		to.Observe(int64(n), metric.WithAttributes(attribute.String("fate", fate)))
	}
	for fate, byReason := range map[string]map[string]uint64{"discarded": snap.WQEs.Discarded, "lost": snap.WQEs.Lost} {
		for reason, n := range byReason {
			to.Observe(int64(n), metric.WithAttributes(attribute.String("fate", fate), attribute.String("reason", reason)))
		}
	}
	return nil
}

func (t *selfTelemetry) observeWQEsPosted(_ context.Context, to metric.Int64Observer) error {
	snap, _, _ := t.latest()
	to.Observe(int64(snap.WQEs.Posted))
	return nil
}
