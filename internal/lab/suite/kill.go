package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

// busyRun runs until it is killed, with a full Send Queue.
func busyRun() perftest.Run {
	return perftest.Run{Tool: perftest.WriteBandwidth, Iterations: endless, Size: 512}
}

// probeRun is a run after the kill that has to reconcile exactly.
func probeRun() perftest.Run {
	return perftest.Run{Tool: perftest.ReadLatency, Iterations: 600, Size: 64}
}

// finiteRun outlives the collector that is ended beside it: over a wire of wireDelay
// it takes half a minute. It has to end well, and does so soon without that delay.
func finiteRun() perftest.Run {
	return perftest.Run{Tool: perftest.ReadLatency, Iterations: 12000, Size: 64}
}

// startBusy starts a pair and waits until its work is exported.
func (g *Guest) startBusy(ctx context.Context, r perftest.Run) (*collector, *pair, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := g.startPair(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	return c, p, waitFor(ctx, patience, "the busy client is seen", func() (bool, error) {
		_, err := c.metrics()
		return c.total(otlp.Match{Service: string(r.Tool), Metric: "rdma.wqe.completions"}) > 0, err
	})
}

// forgets waits until no queue of the service is reported any more.
func (c *collector) forgets(ctx context.Context, service string) error {
	return waitFor(ctx, patience, "the queues of the dead "+service+" are gone", func() (bool, error) {
		all, err := c.metrics()
		return err == nil && len(all) > 0 && queuesNow(all, service) == 0, err
	})
}

// queuesNow returns how many queues of a service the latest export reports: a
// series that ended is not in it, or says so.
func queuesNow(all otlp.Metrics, service string) float64 {
	var latest time.Time
	for _, p := range all {
		if p.Time.After(latest) {
			latest = p.Time
		}
	}
	queues := 0.0
	for _, p := range all.Select(otlp.Match{Service: service, Metric: "rdma.queues"}) {
		if !p.Gone && p.Time.Equal(latest) {
			queues += p.Value
		}
	}
	return queues
}

// stillExact checks that the collector lives, balances, and counts a new client
// exactly.
func (g *Guest) stillExact(ctx context.Context) (string, error) {
	if err := g.collectorLives(); err != nil {
		return "", err
	}
	if err := g.collector.balance(ctx); err != nil {
		return "", err
	}
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	if err := impair(ctx, "delay "+wireDelay.String()); err != nil {
		return "", err
	}
	p, err := g.startPair(ctx, probeRun())
	if err != nil {
		return "", err
	}
	if _, err := p.wait(ctx, 2*patience); err != nil {
		return "", err
	}
	return c.reconciles(ctx, probeRun())
}

func clientKilled(ctx context.Context, g *Guest) (string, error) {
	c, p, err := g.startBusy(ctx, busyRun())
	if err != nil {
		return "", err
	}
	p.kill()
	if err := c.forgets(ctx, string(p.run.Tool)); err != nil {
		return "", err
	}
	exact, err := g.stillExact(ctx)
	return "books balance, queues forgotten; a new client " + exact, err
}

// stuckDeadline is how soon a request that does not complete has to be reported.
const stuckDeadline = 5 * time.Second

// serverKilled kills the peer. Perftest asks for seven retries, which rxe takes
// for endless ones: the client's requests never complete, and only the watch
// over outstanding work can tell.
func serverKilled(ctx context.Context, g *Guest) (string, error) {
	var took time.Duration
	note, err := prompt(stuckDeadline, func() (_ time.Duration, err error) {
		took, err = g.requestsGetStuck(ctx)
		return took, err
	})
	if err != nil {
		return "", fmt.Errorf("rdma.wqe.stuck: %w", err)
	}
	exact, err := g.stillExact(ctx)
	return fmt.Sprintf("rdma.wqe.stuck after %s%s; a new client %s", took.Round(time.Millisecond), note, exact), err
}

// requestsGetStuck kills the server of a busy client and returns how soon that was
// reported. It ends the client, too.
func (g *Guest) requestsGetStuck(ctx context.Context) (time.Duration, error) {
	c, p, err := g.startBusy(ctx, busyRun())
	if err != nil {
		return 0, err
	}
	service := string(p.run.Tool)
	begin := time.Now()
	p.server.kill()
	first, err := c.awaitStuck(ctx, service)
	if err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if device := first.Attributes["rdma.device.name"]; device != clientDevice || first.Attributes["rdma.qp.number"] == "" {
		return 0, fmt.Errorf("of device %q: %v", device, first.Attributes)
	}
	err = waitFor(ctx, patience, "rdma.wqe.oldest_outstanding exceeds 2 s", func() (bool, error) {
		all, err := c.metrics()
		return oldest(all, service) > 2, err
	})
	p.kill()
	return took, errors.Join(err, c.forgets(ctx, service))
}

// awaitStuck waits for the first request of a service that is reported as stuck.
func (c *collector) awaitStuck(ctx context.Context, service string) (first otlp.Record, err error) {
	err = waitFor(ctx, patience, "rdma.wqe.stuck is logged", func() (bool, error) {
		if err := c.readRecords(); err != nil {
			return false, err
		}
		stuck := c.recordsSinceMark(service, "rdma.wqe.stuck")
		if len(stuck) == 0 {
			return false, nil
		}
		first = stuck[0]
		return true, nil
	})
	return first, err
}

// oldest returns the latest rdma.wqe.oldest_outstanding of a service in seconds.
func oldest(all otlp.Metrics, service string) float64 {
	points := all.Select(otlp.Match{Service: service, Metric: "rdma.wqe.oldest_outstanding"})
	if len(points) == 0 {
		return 0
	}
	return points[len(points)-1].Value
}

// collectorKilled kills the collector under a running client. The kernel takes
// the probes out and the client ends well. That a new collector works is for
// the tests after it to say.
func collectorKilled(ctx context.Context, g *Guest) (string, error) {
	return g.collectorGoes(ctx, g.killCollector)
}

// collectorStopped ends, as a service manager does, a collector that was exact
// to the last.
func collectorStopped(ctx context.Context, g *Guest) (string, error) {
	if _, err := g.runningCollector(ctx); err != nil {
		return "", err
	}
	exact, err := g.stillExact(ctx)
	if err != nil {
		return "", err
	}
	text, err := g.collectorGoes(ctx, func() error { return g.stopCollector(ctx) })
	return exact + "; then " + text, err
}

func (g *Guest) collectorGoes(ctx context.Context, end func() error) (string, error) {
	if _, err := g.runningCollector(ctx); err != nil {
		return "", err
	}
	if err := impair(ctx, "delay "+wireDelay.String()); err != nil {
		return "", err
	}
	_, p, err := g.startBusy(ctx, finiteRun())
	if err != nil {
		return "", err
	}
	// Without these the check that nothing is left could not fail.
	patched, err := g.keeper.changedText(providerLibrary)
	if err != nil {
		return "", err
	}
	programs, err := g.ownPrograms(ctx)
	if err != nil {
		return "", err
	}
	if patched == 0 || len(programs) == 0 {
		return "", fmt.Errorf("with the collector running, %d bytes of %s are patched and %d BPF programs loaded: want both", patched, providerLibrary, len(programs))
	}
	if err := end(); err != nil {
		return "", err
	}
	if err := g.nothingLeft(ctx); err != nil {
		return "", err
	}
	if exited, status := p.client.exited(); exited {
		return "", fmt.Errorf("the client ended (%v) with or before the collector: %s", status, p.client.outputTail())
	}
	if err := hasten(ctx); err != nil {
		return "", err
	}
	if _, err := p.wait(ctx, 2*patience); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d patched bytes and %d BPF programs gone, the client ended well", patched, len(programs)), nil
}
