package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

const (
	// starvedShare is the least part of the time of slow requests after the post
	// that has to be in the stage poll beside a busy loop. Some 85 % are; the rest
	// is the wire and what has no evidence. How much goes into posts that were
	// interrupted is another matter, and differs from kernel to kernel.
	starvedShare = 0.6
	// slowDeviceShare is the most of it that may be there when the wire is slow:
	// an emulated machine does preempt a thread now and then.
	slowDeviceShare = 0.1
	// slowEnough is how many slow requests are asked for.
	slowEnough = 60
	// shortWire leaves a client waiting most of the time and makes none slow.
	shortWire = "delay 5ms"
)

// starvedPoller runs a client that spins on its Completion Queue, over a slow
// wire at first, and then over a short one with a busy loop on the CPU to which
// its only thread is bound. A thread of its priority gets that CPU for a tick
// and then waits for some 40 ms, in which its completion lies there.
func starvedPoller(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	if err := impair(ctx, "delay "+injected.String()); err != nil {
		return "", err
	}
	r := perftest.Run{Tool: perftest.ReadLatency, Iterations: endless, Size: 64}
	p, err := g.startPair(ctx, r, "taskset", "--cpu-list", "0", "nice", "-n", "10")
	if err != nil {
		return "", err
	}
	device, err := c.sharesWithin(ctx, p, 0, slowDeviceShare)
	if err != nil {
		return "", fmt.Errorf("a slow wire is blamed on the poller: %w", err)
	}
	if err := impair(ctx, shortWire); err != nil {
		return "", err
	}
	hog, err := g.start("hog", "taskset", "--cpu-list", "0", "bash", "-c", "while :; do :; done")
	if err != nil {
		return "", err
	}
	starved, err := c.sharesWithin(ctx, p, starvedShare, 1)
	hog.kill()
	p.kill()
	if err != nil {
		return "", fmt.Errorf("a starved poller does not show: %w", err)
	}
	text := fmt.Sprintf("over a wire of %s %s; beside a busy loop %s", injected, device, starved)
	return text, errors.Join(c.observes(ctx), c.balance(ctx))
}

// sharesWithin returns how the time of slow requests of a client is divided, once
// as much of it as expected is in the stage poll: a host that keeps the whole guest
// waiting can spoil it.
func (c *collector) sharesWithin(ctx context.Context, p *pair, least, most float64) (stageShares, error) {
	var outside error
	for range attempts {
		slow, err := c.slowOf(ctx, p)
		if err != nil {
			return nil, err
		}
		err = within(shares(slow), least, most)
		if err == nil {
			return shares(slow), nil
		}
		fmt.Printf("    collected again: %v\n", err)
		outside = errors.Join(outside, err)
	}
	return nil, outside
}

// slowOf collects slow requests of a client that were posted from now on.
func (c *collector) slowOf(ctx context.Context, p *pair) ([]otlp.Span, error) {
	begin := time.Now()
	var slow []otlp.Span
	err := waitFor(ctx, patience, fmt.Sprintf("%d requests were slow", slowEnough), func() (bool, error) {
		if exited, status := p.client.exited(); exited {
			return false, fmt.Errorf("the client ended (%v): %s", status, p.client.outputTail())
		}
		spans, err := c.spans()
		slow = slices.DeleteFunc(slices.Clone(spans), func(s otlp.Span) bool {
			return s.Service != string(p.run.Tool) || s.Start.Before(begin)
		})
		return len(slow) >= slowEnough, err
	})
	return slow, err
}

// stageShares is how the time of requests is divided, by stage.
type stageShares map[string]float64

func (s stageShares) String() string {
	var words []string
	for _, stage := range []string{"post", "queue", "device", "poll", "completion"} {
		words = append(words, fmt.Sprintf("%s %.1f %%", stage, 100*s[stage]))
	}
	return strings.Join(words, ", ")
}

func shares(spans []otlp.Span) stageShares {
	total := time.Duration(0)
	sums := map[string]time.Duration{}
	for _, s := range spans {
		total += s.Duration()
		for stage, spent := range stages(s) {
			sums[stage] += spent
		}
	}
	divided := stageShares{}
	for stage, sum := range sums {
		divided[stage] = float64(sum) / float64(max(total, 1))
	}
	return divided
}

// within checks what part of the time after the post is in the stage poll.
func within(s stageShares, least, most float64) error {
	after := s["queue"] + s["device"] + s["poll"] + s["completion"]
	if poll := s["poll"] / after; after == 0 || poll < least || poll > most {
		return fmt.Errorf("of %.1f %% of the time of slow requests that follow the post, %.1f %% are in the stage poll, expected %.0f to %.0f %% of them",
			100*after, 100*s["poll"], 100*least, 100*most)
	}
	return nil
}
