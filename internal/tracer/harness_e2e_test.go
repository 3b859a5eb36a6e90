//go:build e2e

package tracer_test

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
	"github.com/rdmaradar/rdmaradar/internal/verbsim"
)

// everything reports every completion: to pair each with the truth.
var everything = tracer.Config{EventBytes: 64 << 20, MaxMapBytes: 128 << 20}

func requireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: probes cannot be attached without it")
	}
}

func startTracer(t *testing.T, cfg tracer.Config) *tracer.Tracer {
	t.Helper()
	return startTracerLogging(t, cfg, testWriter{t})
}

// startTracerLogging starts a tracer whose warnings go to a writer.
func startTracerLogging(t *testing.T, cfg tracer.Config, log io.Writer) *tracer.Tracer {
	t.Helper()
	requireRoot(t)
	cfg = tracer.OnlyFilesUnder(cfg, homeOf(t).dir)
	cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	tr, err := tracer.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// collector gathers what the tracer delivers until it is closed.
type collector struct {
	// everyOne says that every completion is reported, not slow ones alone.
	everyOne    bool
	mu          sync.Mutex
	completions []verbs.Completion
	stuck       []verbs.Stuck
	stuckAt     []time.Time
}

func collect(tr *tracer.Tracer) *collector {
	c := &collector{everyOne: tracer.ReportsEveryOne(tr)}
	go func() {
		for completion := range tr.Completions() {
			c.mu.Lock()
			c.completions = append(c.completions, completion)
			c.mu.Unlock()
		}
	}()
	go func() {
		for stuck := range tr.Stuck() {
			c.mu.Lock()
			c.stuck = append(c.stuck, stuck)
			c.stuckAt = append(c.stuckAt, time.Now())
			c.mu.Unlock()
		}
	}()
	return c
}

// told are the completions so far.
func (c *collector) told() []verbs.Completion {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.completions
}

// run is one scenario as both sides saw it.
type run struct {
	t             *testing.T
	truth         verbsim.Truth
	records       []verbsim.Record
	seen          []verbs.Completion
	collected     *collector
	before, after verbs.Snapshot
	started       time.Time
}

// simulate runs a scenario under the tracer from its start to its end.
func simulate(t *testing.T, tr *tracer.Tracer, scenario string, flags ...string) *run {
	t.Helper()
	return followWith(t, tr, collect(tr), scenario, flags...)
}

// followWith is for several runs under one tracer.
func followWith(t *testing.T, tr *tracer.Tracer, collected *collector, scenario string, flags ...string) *run {
	t.Helper()
	r := &run{t: t, collected: collected, before: snapshot(t, tr)}
	w := startWorkload(t, scenario, flags...)
	w.waitReady()
	r.started = time.Now()
	w.release()
	r.finish(tr, w)
	return r
}

// followUntil is followWith for as long as it takes until so many completions of the
// workload are such, and for a while at most: on a busy machine that takes longer.
func followUntil(t *testing.T, tr *tracer.Tracer, collected *collector, n int, such func(*verbs.Completion) bool, scenario string, flags ...string) *run {
	t.Helper()
	r := &run{t: t, collected: collected, before: snapshot(t, tr), started: time.Now()}
	w := startWorkload(t, scenario, append(flags, "--seconds", "60")...)
	w.waitReady()
	from := len(collected.told())
	w.release()
	w.waitFor(30*time.Second, func() bool {
		told := collected.told()
		for ; from < len(told); from++ {
			if c := &told[from]; int(c.Queue.Process.TGID) == w.command.Process.Pid && such(c) {
				n--
			}
		}
		return n <= 0
	})
	w.stop()
	r.finish(tr, w)
	return r
}

// finish waits for the workload and for all that is told of it.
func (r *run) finish(tr *tracer.Tracer, w *workload) {
	r.t.Helper()
	r.truth, r.records = w.wait()
	r.settle(tr)
}

// settle waits until every completion that was matched has been told, or was
// dropped. A tracer that reports slow ones alone has told all once nothing new
// arrives.
func (r *run) settle(tr *tracer.Tracer) {
	r.t.Helper()
	const quiet, limit = 500 * time.Millisecond, 20 * time.Second
	last, since := -1, time.Now()
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(20 * time.Millisecond) {
		r.after = snapshot(r.t, tr)
		r.seen = r.collected.told()
		if len(r.seen) != last {
			last, since = len(r.seen), time.Now()
		}
		dropped := r.after.Losses["ring_buffer_full"] + r.after.Losses["consumer_too_slow"]
		all := uint64(len(r.seen))+dropped == r.after.Completions.Matched
		if r.collected.everyOne && all || !r.collected.everyOne && time.Since(since) > quiet {
			return
		}
	}
	r.t.Logf("%d completions were matched, %d told: after %v no more is waited for", r.after.Completions.Matched, len(r.seen), limit)
}

func snapshot(t *testing.T, tr *tracer.Tracer) verbs.Snapshot {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
