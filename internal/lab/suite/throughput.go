package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
	"github.com/rdmaradar/rdmaradar/internal/lab/report"
)

// throughputRounds is how often each tool runs traced. It runs half as often before
// that, untraced, and after it, so that what drifts meets both sides.
const throughputRounds = 2

// throughputRuns are one with a completion for each request and one, a sixteenth
// of the size, with a completion for a hundred.
func throughputRuns() []perftest.Run {
	return []perftest.Run{
		{Tool: perftest.WriteBandwidth, Iterations: 300, Size: 65536},
		{Tool: perftest.WriteBandwidth, Iterations: 2000, Size: 4096},
	}
}

// throughput measures what ib_write_bw moves without the collector, with it, and
// without it again. It is a measurement: what is asserted is that all runs moved data
// and that the traced ones were traced, every completion of them. Only the ratio says
// something: guests of other kernels may run beside this one.
func throughput(ctx context.Context, g *Guest) (string, error) {
	if g.collector != nil {
		if err := g.stopCollector(ctx); err != nil {
			return "", err
		}
	}
	runs := throughputRuns()
	untraced, traced := make([][]float64, len(runs)), make([][]float64, len(runs))
	if _, err := g.measure(ctx, runs, untraced, throughputRounds/2); err != nil {
		return "", fmt.Errorf("untraced: %w", err)
	}
	if err := g.measureTraced(ctx, runs, traced); err != nil {
		return "", fmt.Errorf("traced: %w", err)
	}
	if _, err := g.measure(ctx, runs, untraced, throughputRounds-throughputRounds/2); err != nil {
		return "", fmt.Errorf("untraced again: %w", err)
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
// after that and leaves no probe behind.
func (g *Guest) measureTraced(ctx context.Context, runs []perftest.Run, results [][]float64) error {
	// As it comes it exports few of the requests, all of which are slow here:
	// they wait in a queue of 128.
	c, err := g.collectorIn(ctx, mode{name: "default", polls: "site"})
	if err != nil {
		return err
	}
	made, err := g.measure(ctx, runs, results, throughputRounds)
	if err != nil {
		return err
	}
	expected, err := sumsOfAll(made)
	if err != nil {
		return err
	}
	if err := c.settles(ctx, expected); err != nil {
		return err
	}
	if err := c.observes(ctx); err != nil {
		return err
	}
	return errors.Join(g.stopCollector(ctx), g.nothingLeft(ctx))
}

// measure appends the bandwidths of some rounds to the results of each run, and
// returns all runs that were made for them.
func (g *Guest) measure(ctx context.Context, runs []perftest.Run, results [][]float64, rounds int) ([]perftest.Run, error) {
	var made []perftest.Run
	for range rounds {
		for i, r := range runs {
			output, tries, err := g.calibrated(ctx, r)
			if err != nil {
				return nil, err
			}
			bandwidth, err := perftest.Bandwidth(output)
			if err != nil {
				return nil, err
			}
			results[i] = append(results[i], bandwidth)
			made = append(made, slices.Repeat([]perftest.Run{r}, tries)...)
		}
	}
	return made, nil
}

// calibrated runs a client until one could calibrate its clock, and returns its
// output and how many were run.
func (g *Guest) calibrated(ctx context.Context, r perftest.Run) (output string, tries int, err error) {
	for tries = 1; tries <= mostTries; tries++ {
		if output, err = g.runPair(ctx, r); err != nil || !perftest.Uncalibrated(output) {
			return output, tries, err
		}
	}
	return "", tries, uncalibrated(r)
}

// sumsOfAll are the sums after all of the runs, which are of the same tool.
func sumsOfAll(runs []perftest.Run) ([]sum, error) {
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
			all[i].want += s.want
		}
	}
	return all, nil
}
