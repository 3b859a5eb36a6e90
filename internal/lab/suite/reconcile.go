package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// reconcileRuns are sized for emulation. The bandwidth tests run once with one
// completion in a hundred requests, a number of requests that is no multiple of
// it, and once with a completion for each.
func reconcileRuns() []perftest.Run {
	return []perftest.Run{
		{Tool: perftest.WriteLatency, Iterations: 300, Size: 64},
		{Tool: perftest.SendLatency, Iterations: 300, Size: 256},
		{Tool: perftest.ReadLatency, Iterations: 1000, Size: 64},
		{Tool: perftest.WriteBandwidth, Iterations: 2050, Size: 4096},
		{Tool: perftest.WriteBandwidth, Iterations: 300, Size: 65536},
		{Tool: perftest.SendBandwidth, Iterations: 1030, Size: 2048},
	}
}

// dataPathTests are those of what every mode has to get right: completions and
// bytes exact, latencies within a bucket, every request accounted for.
func dataPathTests(m mode) []Test {
	var tests []Test
	for _, r := range reconcileRuns() {
		tests = append(tests, Test{
			Name: fmt.Sprintf("%s: reconcile %s, %d of %d bytes", m.name, r.Tool, r.Iterations, r.Size),
			Run:  func(ctx context.Context, g *Guest) (string, error) { return reconcile(ctx, g, m, r) },
		})
	}
	return append(tests, Test{
		Name: m.name + ": read latency agrees with perftest",
		Run:  func(ctx context.Context, g *Guest) (string, error) { return readLatency(ctx, g, m) },
	})
}

// reconcile holds the exported sums against perftest's own work, exactly, and
// perftest's work against the kernel's witness.
func reconcile(ctx context.Context, g *Guest, m mode, r perftest.Run) (string, error) {
	c, err := g.collectorIn(ctx, m)
	if err != nil {
		return "", err
	}
	packets, err := sentPackets()
	if err != nil {
		return "", err
	}
	w, err := startWitness()
	if err != nil {
		return "", err
	}
	p, runErr := g.startPair(ctx, r)
	if runErr == nil {
		_, runErr = p.wait(ctx, 2*patience)
	}
	posts, completions, witnessErr := w.counts()
	if err := errors.Join(runErr, witnessErr, w.stop()); err != nil {
		return "", err
	}
	after, err := sentPackets()
	if err != nil {
		return "", err
	}
	if after-packets < posts/2 {
		return "", fmt.Errorf("only %d packets crossed the wire for %d requests: the devices talk past it", after-packets, posts)
	}
	if err := agreesWithWitness(r, posts, completions); err != nil {
		return "", err
	}
	exact, err := c.reconciles(ctx, r)
	return exact, errors.Join(err, c.observes(ctx))
}

func agreesWithWitness(r perftest.Run, posts, completions uint64) error {
	client, server, err := r.Work()
	if err != nil {
		return err
	}
	wantPosts := client.SendRequests + server.SendRequests
	wantCompletions := client.SendCompletions + server.SendCompletions + client.Receives + server.Receives
	if posts != wantPosts || completions != wantCompletions {
		return fmt.Errorf("the kernel saw %d posts and %d completions, perftest should have made %d and %d: the test's own arithmetic is wrong",
			posts, completions, wantPosts, wantCompletions)
	}
	return nil
}

// reconciles waits until the exported sums reach the expected ones, lets another
// interval be exported, and checks that they stay there, that everything that
// can be timed was, and that the books balance.
func (c *collector) reconciles(ctx context.Context, r perftest.Run) (string, error) {
	expected, err := expectedSums(r)
	if err != nil {
		return "", err
	}
	if err := c.settles(ctx, expected); err != nil {
		return "", err
	}
	if err := errors.Join(c.allTimed(r), c.balance(ctx)); err != nil {
		return "", err
	}
	return describe(expected), nil
}

// settles waits until the exported sums are the expected ones, and checks that the
// next collection adds nothing.
func (c *collector) settles(ctx context.Context, expected []sum) error {
	err := waitFor(ctx, patience, "the exported sums are as expected", func() (bool, error) {
		_, err := c.metrics()
		return err == nil && differences(c.total, expected) == nil, err
	})
	if err != nil {
		return errors.Join(err, differences(c.total, expected))
	}
	return errors.Join(c.collected(ctx, c.newest()), differences(c.total, expected))
}

// sum is one exported sum and what it has to be.
type sum struct {
	match otlp.Match
	want  uint64
}

func expectedSums(r perftest.Run) ([]sum, error) {
	client, server, err := r.Work()
	if err != nil {
		return nil, err
	}
	return append(sideSums(r, clientDevice, client), sideSums(r, serverDevice, server)...), nil
}

func sideSums(r perftest.Run, device string, w perftest.Work) []sum {
	sent, received := w.SendBytes(r.Size), w.ReceiveBytes(r.Size)
	if w.Operation.Receives() {
		sent, received = 0, received+sent
	}
	var sums []sum
	add := func(metric string, want uint64, attributes ...string) {
		m := otlp.Match{Service: string(r.Tool), Metric: metric, Attributes: map[string]string{"rdma.device.name": device}}
		for i := 0; i < len(attributes); i += 2 {
			m.Attributes[attributes[i]] = attributes[i+1]
		}
		sums = append(sums, sum{m, want})
	}
	if w.SendCompletions > 0 {
		add("rdma.wqe.completions", w.SendCompletions, "rdma.operation.name", w.Operation.String(), "error.type", "")
	}
	add("rdma.wqe.completions", w.Receives, "rdma.operation.name", verbs.OpRecv.String(), "error.type", "")
	// Nothing else may be counted beside these.
	add("rdma.wqe.completions", w.SendCompletions+w.Receives)
	add("rdma.io", sent, "network.io.direction", "transmit")
	add("rdma.io", received, "network.io.direction", "receive")
	return sums
}

// differences holds totals against the expected ones.
func differences(total func(otlp.Match) float64, expected []sum) error {
	var errs []error
	for _, s := range expected {
		if got := total(s.match); got != float64(s.want) {
			errs = append(errs, fmt.Errorf("%s of %s is %.0f, perftest made %d", s.match.Metric, attributesOf(s.match), got, s.want))
		}
	}
	return errors.Join(errs...)
}

// allTimed checks that every send completion was measured: the queues were
// seen from their start, so nothing excuses an unmeasured one.
func (c *collector) allTimed(r perftest.Run) error {
	client, server, err := r.Work()
	if err != nil {
		return err
	}
	h := c.histogram(otlp.Match{Service: string(r.Tool), Metric: "rdma.wqe.duration"})
	if want := client.SendCompletions + server.SendCompletions; h.Count != want {
		return fmt.Errorf("rdma.wqe.duration holds %d durations, %d sends completed", h.Count, want)
	}
	return nil
}

func attributesOf(m otlp.Match) string {
	words := []string{m.Service}
	for _, key := range []string{"rdma.device.name", "rdma.operation.name", "network.io.direction"} {
		if value := m.Attributes[key]; value != "" {
			words = append(words, value)
		}
	}
	return strings.Join(words, " ")
}

func describe(expected []sum) string {
	var words []string
	for _, s := range expected {
		if s.want > 0 && len(s.match.Attributes) > 1 {
			words = append(words, fmt.Sprintf("%s %s %d", s.match.Metric, attributesOf(s.match), s.want))
		}
	}
	return "exactly: " + strings.Join(words, "; ")
}
