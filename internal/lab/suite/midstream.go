package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

// wireDelay is the least that any request takes while the wire is impaired by
// it: a latency below belongs to another request.
const wireDelay = 2 * time.Millisecond

// midstreamCompletions is how many completions are to be made beside a collector
// with all its probes in place.
const midstreamCompletions = 1000

// endless runs until it is killed.
const endless = 20_000_000

// midstreamRuns are the clients that a collector finds running. The reader has
// one request at a time on its queue. The writer's queue is never empty and all
// its requests have one wr_id, 99 of 100 unsignaled: nothing tells where the
// first completion belongs.
func midstreamRuns() []perftest.Run {
	return []perftest.Run{
		{Tool: perftest.ReadLatency, Iterations: endless, Size: 64},
		{Tool: perftest.WriteBandwidth, Iterations: endless, Size: 512, Port: perftest.DefaultPort + 1},
	}
}

// clientsBefore starts a collector in the middle of running clients and checks
// what it counts and what it times.
func clientsBefore(ctx context.Context, g *Guest) (string, error) {
	if g.collector != nil {
		if err := g.stopCollector(ctx); err != nil {
			return "", err
		}
	}
	// It is silent until the next test tells it to write.
	linked, err := g.startLinkedEarly(ctx)
	if err != nil {
		return "", err
	}
	g.linked = &earlier{program: linked}
	pairs, err := g.startMidstream(ctx)
	if err != nil {
		return "", err
	}
	w, err := startWitness()
	if err != nil {
		return "", err
	}
	text, err := g.watchMidstream(ctx, pairs, w)
	return text, errors.Join(err, w.stop())
}

// startMidstream starts the clients and lets them get going. They spin, and
// would keep an emulated CPU from ever loading the tracer; with the lowest
// priority they do not.
func (g *Guest) startMidstream(ctx context.Context) ([]*pair, error) {
	if err := impair(ctx, "delay "+wireDelay.String()); err != nil {
		return nil, err
	}
	var pairs []*pair
	for _, r := range midstreamRuns() {
		p, err := g.startPair(ctx, r, "nice", "-n", "19")
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
	return pairs, pause(ctx, 2*time.Second)
}

func (g *Guest) watchMidstream(ctx context.Context, pairs []*pair, w *witness) (string, error) {
	begin := time.Now()
	if err := g.startCollector(ctx, atSites()); err != nil {
		return "", err
	}
	c := g.collector
	g.linked.collector = c
	_, atReady, err := w.counts()
	if err != nil {
		return "", err
	}
	err = waitFor(ctx, patience, fmt.Sprintf("%d completions were made", midstreamCompletions), func() (bool, error) {
		_, now, err := w.counts()
		return now-atReady >= midstreamCompletions, err
	})
	if err != nil {
		return "", err
	}
	// Their memory was registered before the collector started, too.
	var regions string
	for _, p := range pairs {
		text, err := c.liveRegions(ctx, p.client, string(p.run.Tool), clientDevice)
		if err != nil {
			return "", err
		}
		regions += text + "; "
	}
	for _, p := range pairs {
		if exited, status := p.client.exited(); exited {
			return "", fmt.Errorf("%s ended (%v): %s", p.client.name(), status, p.client.outputTail())
		}
		p.kill()
	}
	watched := time.Since(begin)
	_, atEnd, err := w.counts()
	if err != nil {
		return "", err
	}
	if err := errors.Join(c.collected(ctx, g.worked().Add(interval)), c.balance(ctx)); err != nil {
		return "", err
	}
	text, err := c.midstreamText(pairs, watched, atReady, atEnd)
	return regions + text, err
}

// midstreamText holds the counts of both clients together against the
// witness's and judges each client.
func (c *collector) midstreamText(pairs []*pair, watched time.Duration, atReady, atEnd uint64) (string, error) {
	var text string
	var errs []error
	counted := 0.0
	for _, p := range pairs {
		m, err := c.watchOf(p.run, watched)
		if err != nil {
			return "", err
		}
		counted += m.counted
		text += fmt.Sprintf("%s: %s; ", p.run.Tool, m)
		if err := m.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.run.Tool, err))
		}
	}
	text += fmt.Sprintf("the kernel made %d completions, %d of them with all probes in place", atEnd, atEnd-atReady)
	// A client dies with few completions that it never polled: one of the
	// reader's, two of the writer's.
	const unpolled = 3
	if counted > float64(atEnd) || counted+unpolled < float64(atEnd-atReady) {
		errs = append(errs, fmt.Errorf("%.0f completions counted: %s", counted, text))
	}
	return text, errors.Join(errs...)
}

// midstreamWatch is what was seen of one client.
type midstreamWatch struct {
	counted  float64
	ours     otlp.Histogram
	unsynced bool
	watched  time.Duration
}

func (c *collector) watchOf(r perftest.Run, watched time.Duration) (midstreamWatch, error) {
	work, _, err := r.Work()
	if err != nil {
		return midstreamWatch{}, err
	}
	service := string(r.Tool)
	return midstreamWatch{
		counted:  c.total(completionsOf(service, clientDevice, work.Operation.String())),
		ours:     c.histogram(otlp.Match{Service: service, Metric: "rdma.wqe.duration"}),
		unsynced: wasUnsynced(c.all, service),
		watched:  watched,
	}, nil
}

func (m midstreamWatch) String() string {
	return fmt.Sprintf("%.0f completions counted, %d timed from %s to %s, together %s of %s (the wire takes %s)",
		m.counted, m.ours.Count, m.ours.Min, m.ours.Max, m.ours.Sum, m.watched.Round(time.Millisecond), wireDelay)
}

// check looks for wrong latencies.
//
// Both clients post a signaled request only after they have polled the
// completion of the one before: a reader because it waits for it, ib_write_bw
// because 128 requests fit on its queue and it learns of room by the hundred.
// So the durations do not overlap, and together they cannot be longer than the
// client was watched. A match off by one request doubles each of them.
func (m midstreamWatch) check() error {
	switch {
	case m.counted == 0:
		return fmt.Errorf("nothing was counted: %s", m)
	case float64(m.ours.Count) > m.counted:
		return fmt.Errorf("more was timed than counted: %s", m)
	case m.ours.Count > 0 && m.ours.Buckets[0].Upper < wireDelay:
		return fmt.Errorf("a latency is shorter than the wire: %s", m)
	case m.ours.Sum > m.watched:
		return fmt.Errorf("the latencies are longer than the time they were seen in: %s", m)
	case !m.unsynced:
		return fmt.Errorf("the queue seen from mid-stream was never reported as unsynced: %s", m)
	}
	return nil
}

// wasUnsynced reports whether a queue of the service was ever reported as
// unsynced.
func wasUnsynced(all otlp.Metrics, service string) bool {
	match := otlp.Match{Service: service, Metric: "rdma.queues", Attributes: map[string]string{"rdma.queue.state": "unsynced"}}
	for _, p := range all.Select(match) {
		if p.Value > 0 {
			return true
		}
	}
	return false
}
