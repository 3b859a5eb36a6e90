package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

// spanDeadline is how soon a slow request has to be seen.
const spanDeadline = 5 * time.Second

func delayIsSeen(ctx context.Context, g *Guest) (string, error) {
	return impairmentIsSeen(ctx, g, "delay "+injected.String())
}

// lossIsSeen: a lost packet costs the time that ibv_rc_pingpong lets its queue
// wait for an acknowledgement, 4.096 µs·2^14 or 67 ms, rounded to the kernel's
// timer ticks. What is asserted is the 50 ms of the other test.
func lossIsSeen(ctx context.Context, g *Guest) (string, error) {
	return impairmentIsSeen(ctx, g, "loss 20%")
}

// impairmentIsSeen runs a ping-pong over a healthy wire and expects no slow
// span, then impairs the wire and expects one within 5 s, none shorter than
// what was injected.
func impairmentIsSeen(ctx context.Context, g *Guest, netem string) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	stalls, err := startStallWitness()
	if err != nil {
		return "", err
	}
	defer stalls.end()
	client, server, err := g.startPingpong(ctx, 1_000_000)
	if err != nil {
		return "", err
	}
	if err := pause(ctx, 6*time.Second); err != nil {
		return "", err
	}
	for _, s := range c.spansSinceMark {
		fmt.Printf("DEBUG span %s %s %s stalled %s\n", s.Name, s.Start.Format("05.000"), s.Duration(), stalls.within(s.Start, s.End))
	}
	fmt.Printf("DEBUG stalls %d total %s\n", len(stalls.gaps), stalls.within(time.Time{}, time.Now()))
	if err := c.healthySoFar(); err != nil {
		return "", err
	}
	begin := time.Now()
	if err := impair(ctx, netem); err != nil {
		return "", err
	}
	err = waitFor(ctx, spanDeadline-time.Since(begin), "a slow span is exported", func() (bool, error) {
		spans, err := c.spans()
		return len(spans) > 0, err
	})
	seen := time.Since(begin)
	if err != nil {
		return "", err
	}
	if err := pause(ctx, 3*time.Second); err != nil {
		return "", err
	}
	spans, err := c.spans()
	if err != nil {
		return "", err
	}
	client.kill()
	server.kill()
	pids := []int{client.pid(), server.pid()}
	for _, s := range spans {
		err = errors.Join(err, checkSpan(s, begin, pids))
	}
	if err := errors.Join(err, c.balance(ctx)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d slow spans, the first exported %s after the injection, the shortest %s",
		len(spans), seen.Round(time.Millisecond), shortest(spans).Round(time.Microsecond)), nil
}

// healthySoFar fails when anything was slow, or nothing was seen at all.
func (c *collector) healthySoFar() error {
	spans, err := c.spans()
	if err != nil {
		return err
	}
	if len(spans) > 0 {
		return fmt.Errorf("%d slow spans over a healthy wire, the longest %s", len(spans), longest(spans))
	}
	if _, err := c.metrics(); err != nil {
		return err
	}
	sends := completionsOf(pingpong, clientDevice, "send")
	if n := c.total(sends); n < 100 {
		return fmt.Errorf("only %.0f sends seen in 6 s over a healthy wire", n)
	}
	sends.Metric, sends.Attributes = "rdma.wqe.slow_completions", nil
	if n := c.total(sends); n > 0 {
		return fmt.Errorf("%.0f slow completions counted over a healthy wire", n)
	}
	return nil
}

func checkSpan(s otlp.Span, begin time.Time, pids []int) error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("span %q of %s: "+format, append([]any{s.Name, s.Duration()}, args...)...))
	}
	if s.Duration() < injected {
		fail("shorter than the injected %s", injected)
	}
	if s.End.Before(begin) || s.End.After(time.Now()) {
		fail("ends at %s, the injection began at %s", s.End, begin)
	}
	device := s.Attributes["rdma.device.name"]
	if device != clientDevice && device != serverDevice || s.Name != "send "+device || s.Service != pingpong {
		fail("of service %q and device %q", s.Service, device)
	}
	pid, _ := strconv.Atoi(s.Attributes["process.pid"])
	if pid != 0 && !slices.Contains(pids, pid) {
		fail("of process %d, the clients are %v", pid, pids)
	}
	if s.Attributes["rdma.qp.number"] == "" || s.Failed {
		fail("without a QP number or failed: %v", s.Attributes)
	}
	if total, known := stages(s); known && (total-s.Duration()).Abs() > time.Microsecond {
		fail("its stages add up to %s", total)
	}
	return errors.Join(errs...)
}

// stages adds up the stages of a span.
func stages(s otlp.Span) (total time.Duration, known bool) {
	for key, value := range s.Attributes {
		if !strings.HasPrefix(key, "rdma.wqe.stage.") {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, true
		}
		total += time.Duration(seconds * float64(time.Second))
		known = true
	}
	return total, known
}

func shortest(spans []otlp.Span) time.Duration {
	return slices.MinFunc(spans, byDuration).Duration()
}

func longest(spans []otlp.Span) time.Duration {
	return slices.MaxFunc(spans, byDuration).Duration()
}

func byDuration(a, b otlp.Span) int { return int(a.Duration() - b.Duration()) }
