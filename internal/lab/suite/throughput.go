package suite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
	"github.com/rdmaradar/rdmaradar/internal/lab/report"
)

const (
	// throughputPhases is how often tracing is switched off and on, so that what
	// drifts meets both sides.
	throughputPhases = 2
	// phaseRuns is how often a tool runs in each of them.
	phaseRuns = 3
)

// throughputRuns are one with a completion for each request and one, a sixteenth
// of the size, with a completion for a hundred.
func throughputRuns() []perftest.Run {
	return []perftest.Run{
		{Tool: perftest.WriteBandwidth, Iterations: 500, Size: 65536},
		{Tool: perftest.WriteBandwidth, Iterations: 3000, Size: 4096},
	}
}

// throughput measures what ib_write_bw moves with and without the collector, in
// turns. It is a measurement: what is asserted is that all runs moved data and
// that the traced ones were traced, every completion of them.
func throughput(ctx context.Context, g *Guest) (string, error) {
	if g.collector != nil {
		if err := g.stopCollector(ctx); err != nil {
			return "", err
		}
	}
	runs := throughputRuns()
	untraced, traced := make([][]float64, len(runs)), make([][]float64, len(runs))
	for range throughputPhases {
		if err := g.measure(ctx, runs, untraced); err != nil {
			return "", fmt.Errorf("untraced: %w", err)
		}
		if err := g.measureTraced(ctx, runs, traced); err != nil {
			return "", fmt.Errorf("traced: %w", err)
		}
	}
	var words []string
	for i, r := range runs {
		t := report.NewThroughput(string(r.Tool), r.Size, r.Iterations, untraced[i], traced[i])
		g.throughput = append(g.throughput, t)
		words = append(words, t.String())
	}
	return strings.Join(words, "; "), nil
}

// measureTraced measures beside a collector at its completion sites, which ends
// after that.
func (g *Guest) measureTraced(ctx context.Context, runs []perftest.Run, results [][]float64) error {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return err
	}
	if err := g.measure(ctx, runs, results); err != nil {
		return err
	}
	expected, err := sumsOfAll(runs, phaseRuns)
	if err != nil {
		return err
	}
	if err := c.settles(ctx, expected); err != nil {
		return err
	}
	if err := c.observes(ctx); err != nil {
		return err
	}
	return g.stopCollector(ctx)
}

// measure appends the bandwidths of one phase to the results of each run.
func (g *Guest) measure(ctx context.Context, runs []perftest.Run, results [][]float64) error {
	for range phaseRuns {
		for i, r := range runs {
			p, err := g.startPair(ctx, r)
			if err != nil {
				return err
			}
			output, err := p.wait(ctx, time.Minute)
			if err != nil {
				return err
			}
			bandwidth, err := perftest.Bandwidth(output)
			if err != nil {
				return err
			}
			results[i] = append(results[i], bandwidth)
		}
	}
	return nil
}

// sumsOfAll are the sums after each of the runs has run so many times, all of
// the same tool.
func sumsOfAll(runs []perftest.Run, times uint64) ([]sum, error) {
	var all []sum
	for _, r := range runs {
		sums, err := expectedSums(r)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = make([]sum, len(sums))
		}
		for i, s := range sums {
			all[i].match = s.match
			all[i].want += times * s.want
		}
	}
	return all, nil
}
