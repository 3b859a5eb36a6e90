package suite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

// probeOverhead bounds what perftest's clock sees and ours does not, for one
// request: the entry of the probes before our first time stamp, their way out
// after our last, and perftest's loop.
const probeOverhead = 300 * time.Microsecond

// interrupted is the fraction of the iterations that may have lost the CPU in
// the short time that perftest counts and we do not.
const interrupted = 0.01

// readLatency compares our quantiles of ib_read_lat with perftest's own
// per-iteration report. A delay on the wire makes the requests long enough that
// the overhead of emulated probes is small beside them.
//
// Perftest measures from before a post to before the next, an interval that
// encloses ours, so request by request ours is at most perftest's: our bucket
// begins at or below its quantile, with no tolerance. In the other direction
// ours may be less by the overhead of the probes, the bucket adds its own width,
// a factor of 2^(1/8), and one iteration in a hundred may have been interrupted
// outside our interval. A busy host interrupts more of them, so when ours is less
// by more than that, all is measured once more.
func readLatency(ctx context.Context, g *Guest, m mode) (string, error) {
	c, err := g.collectorIn(ctx, m)
	if err != nil {
		return "", err
	}
	if err := impair(ctx, "delay "+wireDelay.String()); err != nil {
		return "", err
	}
	var short error
	for range attempts {
		text, err := g.latencyAgrees(ctx, c)
		if !errors.Is(err, errShorter) || errors.Is(err, errLonger) {
			return text, err
		}
		short = errors.Join(short, err)
		if err := c.mark(ctx, g.worked()); err != nil {
			return "", err
		}
	}
	return "", short
}

// latencyAgrees measures once.
func (g *Guest) latencyAgrees(ctx context.Context, c *collector) (string, error) {
	r := perftest.Run{Tool: perftest.ReadLatency, Iterations: 1500, Size: 64}
	output, err := g.runPair(ctx, r)
	if err != nil {
		return "", err
	}
	theirs, err := iterations(output)
	if err != nil {
		return "", err
	}
	if _, err := c.reconciles(ctx, r); err != nil {
		return "", err
	}
	ours := c.histogram(otlp.Match{Service: string(r.Tool), Metric: "rdma.wqe.duration"})
	slices.Sort(theirs)
	p50, err50 := sameQuantile(&ours, theirs, 0.50)
	p99, err99 := sameQuantile(&ours, theirs, 0.99)
	return p50 + "; " + p99, errors.Join(err50, err99, c.observes(ctx))
}

var (
	errLonger  = errors.New("longer")
	errShorter = errors.New("shorter")
)

// sameQuantile compares one rank. Perftest's report lacks the last iteration,
// which cannot raise any rank of ours over its own.
func sameQuantile(ours *otlp.Histogram, theirs []time.Duration, q float64) (string, error) {
	rank := int(math.Ceil(q * float64(ours.Count)))
	if rank < 1 || rank > len(theirs) {
		return "", fmt.Errorf("%d durations of ours, %d of perftest: no p%.0f", ours.Count, len(theirs), q*100)
	}
	bucket, most := ours.Quantile(q), theirs[rank-1]
	least := theirs[max(rank-1-int(interrupted*float64(len(theirs))), 0)]
	text := fmt.Sprintf("p%.0f: perftest %s, ours in (%s, %s]", q*100, most, bucket.Lower, bucket.Upper)
	if bucket.Lower > most {
		return "", fmt.Errorf("%s: %w than the interval that encloses it", text, errLonger)
	}
	if bucket.Upper+probeOverhead < least {
		return "", fmt.Errorf("%s: %w than its p%.0f of %s by more than the probes explain (%s)", text, errShorter, (q-interrupted)*100, least, probeOverhead)
	}
	return text, nil
}
