package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
)

// mode is a way of observing completions in which tests run.
type mode struct {
	// name goes into the names of tests.
	name string
	// polls is what the collector calls the way in which poll_cq is observed.
	polls string
	// settings are lines of the receiver's configuration, beside those that all
	// collectors under test have.
	settings string
	// runsOn is set where the collector is to run on although it cannot trace.
	runsOn bool
}

// exportMany lets the tests see each slow request of theirs.
const exportMany = "    max_exported_per_second: 1000\n"

// atSites is the mode of a collector as it comes, once its completion sites
// have agreed with entry and return.
func atSites() mode { return mode{name: "at sites", polls: "site", settings: exportMany} }

// modes are those in which the data path is tested. All other tests run in the
// first.
func modes() []mode {
	return []mode{atSites(), {name: "in windows", polls: "windows", settings: exportMany + "    probe_mode: windows\n"}}
}

// collectorAtHand returns the collector that is running, in whichever mode, or one
// as it comes.
func (g *Guest) collectorAtHand(ctx context.Context) (*collector, error) {
	m := atSites()
	if g.collector != nil {
		m = g.collector.mode
	}
	return g.collectorIn(ctx, m)
}

// collectorIn returns a collector in a mode, the one that runs if that is its
// own, and marks the beginning of a test.
func (g *Guest) collectorIn(ctx context.Context, m mode) (*collector, error) {
	if g.collector != nil && g.collector.mode != m {
		if err := g.stopCollector(ctx); err != nil {
			return nil, err
		}
	}
	if g.collector == nil {
		if err := g.startCollector(ctx, m); err != nil {
			return nil, err
		}
	}
	if err := g.reach(ctx); err != nil {
		return nil, err
	}
	return g.collector, g.collector.mark(ctx, g.worked())
}

const (
	// reachRuns is how many runs of traffic may pass until a mode is reached.
	reachRuns = 8
	// reachTime is how long after enough traffic it may take.
	reachTime = 5 * time.Second
)

// reach runs traffic until the collector observes completions in its mode.
func (g *Guest) reach(ctx context.Context) error {
	last := g.collector.observes(ctx)
	for range reachRuns {
		if last == nil {
			return nil
		}
		if err := g.exercise(ctx); err != nil {
			return err
		}
		_ = waitFor(ctx, reachTime, "the mode is reached", func() (bool, error) {
			last = g.collector.observes(ctx)
			return last == nil, nil
		})
	}
	return last
}

// exercise completes some hundred requests, with empty polls between them.
func (g *Guest) exercise(ctx context.Context) error {
	if err := impair(ctx, "delay "+wireDelay.String()); err != nil {
		return err
	}
	if _, err := g.runPair(ctx, perftest.Run{Tool: perftest.ReadLatency, Iterations: 400, Size: 64}); err != nil {
		return err
	}
	return wire.Veth().Clear(ctx)
}

// observes checks that completions are observed in the collector's mode now.
func (c *collector) observes(ctx context.Context) error {
	telemetry, err := c.telemetry(ctx)
	if err != nil {
		return err
	}
	if polls := pollMode(telemetry); polls != c.mode.polls {
		return fmt.Errorf("poll_cq of rxe is observed in the mode %q, not %q", polls, c.mode.polls)
	}
	return nil
}

// modeNow returns how completions are observed, "" without a collector or when
// it does not say.
func (g *Guest) modeNow(ctx context.Context) string {
	if g.collector == nil {
		return ""
	}
	telemetry, err := g.collector.telemetry(ctx)
	if err != nil {
		return ""
	}
	return pollMode(telemetry)
}

// pollMode reads from the collector's own telemetry how poll_cq of rxe is
// observed, "" when it is not.
func pollMode(telemetry otlp.Metrics) string {
	polls := otlp.Match{Metric: "otelcol_rdma_probes", Attributes: map[string]string{"provider": rxe, "function": "poll_cq"}}
	for _, p := range telemetry.Select(polls) {
		if p.Value > 0 {
			return p.Attributes["mode"]
		}
	}
	return ""
}

// sitesAreReached starts a collector and runs a client while it goes over from
// entry and return to completion sites: nothing may be lost on the way.
func sitesAreReached(ctx context.Context, g *Guest) (string, error) {
	if g.collector != nil {
		if err := g.stopCollector(ctx); err != nil {
			return "", err
		}
	}
	if err := g.startCollector(ctx, atSites()); err != nil {
		return "", err
	}
	c := g.collector
	if c.observes(ctx) == nil {
		return "", fmt.Errorf("completion sites are used before any completion was compared")
	}
	if err := c.mark(ctx, g.worked()); err != nil {
		return "", err
	}
	if err := impair(ctx, "delay "+wireDelay.String()); err != nil {
		return "", err
	}
	r := perftest.Run{Tool: perftest.ReadLatency, Iterations: 6000, Size: 64}
	p, err := g.startPair(ctx, r)
	if err != nil {
		return "", err
	}
	err = waitFor(ctx, patience, "completions are observed at sites", func() (bool, error) {
		if exited, status := p.client.exited(); exited {
			return false, fmt.Errorf("the client ended (%v) before: %s", status, p.client.outputTail())
		}
		return c.observes(ctx) == nil, nil
	})
	if err != nil {
		return "", err
	}
	// The rest needs no time.
	if err := hasten(ctx); err != nil {
		return "", err
	}
	if _, err := p.wait(ctx, 2*patience); err != nil {
		return "", err
	}
	exact, err := c.reconciles(ctx, r)
	return "under a running client; " + exact, err
}
