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
	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

// healthyWire is a wire a little longer than a cable: between messages the
// clients leave the one CPU to the collector, and neither waits for the other.
const healthyWire = "delay 5ms"

// spanDeadline is how soon a slow request has to be seen.
const spanDeadline = 5 * time.Second

// delayIsSeen: the clients sleep until the event of their completion. That is no
// fault of theirs, however long they sleep.
func delayIsSeen(ctx context.Context, g *Guest) (string, error) {
	text, spans, err := impairmentIsSeen(ctx, g, "delay "+injected.String(), checkSpan)
	if err != nil {
		return text, err
	}
	if err := within(shares(spans), 0, slowDeviceShare); err != nil {
		return "", fmt.Errorf("a slow wire is blamed on a thread that sleeps: %w", err)
	}
	return fmt.Sprintf("%s; %s", text, shares(spans)), nil
}

// lossIsSeen: a lost packet costs the time that ibv_rc_pingpong lets its queue
// wait for an acknowledgement, 4.096 µs·2^14 or 67 ms, rounded to the kernel's
// timer ticks. What is asserted is the 50 ms of the other test.
func lossIsSeen(ctx context.Context, g *Guest) (string, error) {
	text, _, err := impairmentIsSeen(ctx, g, healthyWire+" loss 10%", checkNoisySpan)
	return text, err
}

// impairmentIsSeen expects no slow span over a healthy wire that the client does not
// account for, then impairs the wire of a ping-pong and expects one of at least the
// injected size within 5 s. Each span is checked.
func impairmentIsSeen(ctx context.Context, g *Guest, netem string, check spanCheck) (string, []otlp.Span, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", nil, err
	}
	if err := impair(ctx, healthyWire); err != nil {
		return "", nil, err
	}
	healthy, err := g.noneSeemsSlow(ctx, c)
	if err != nil {
		return "", nil, err
	}
	client, server, err := g.startPingpong(ctx, endless)
	if err != nil {
		return "", nil, err
	}
	if err := c.awaitSends(ctx, client); err != nil {
		return "", nil, err
	}
	var injection injectionResult
	note, err := prompt(spanDeadline, func() (_ time.Duration, err error) {
		injection, err = c.slowSpans(ctx, client, netem)
		return injection.seen, err
	})
	if err != nil {
		return "", nil, err
	}
	client.kill()
	server.kill()
	pids := []int{client.pid(), server.pid()}
	for _, s := range injection.spans {
		err = errors.Join(err, check(s, injection.begin, pids))
	}
	return healthy + "; then " + injection.String() + note, injection.spans, errors.Join(err, c.balance(ctx))
}

// injectionResult is what was seen after the wire was impaired.
type injectionResult struct {
	begin time.Time
	// seen is how long after it the first span was exported.
	seen  time.Duration
	spans []otlp.Span
}

func (r injectionResult) String() string {
	return fmt.Sprintf("the first span of at least %s exported %s after the injection, %d spans in all, from %s to %s",
		injected, r.seen.Round(time.Millisecond), len(r.spans), shortest(r.spans), longest(r.spans))
}

// slowSpans impairs a healthy wire and collects what is exported until some seconds
// after the first span.
func (c *collector) slowSpans(ctx context.Context, client *process, netem string) (injectionResult, error) {
	if err := errors.Join(impair(ctx, healthyWire), pause(ctx, injected)); err != nil {
		return injectionResult{}, err
	}
	before := len(c.spansSinceMark)
	result := injectionResult{begin: time.Now()}
	if err := impair(ctx, netem); err != nil {
		return result, err
	}
	impaired := time.Now()
	err := waitFor(ctx, patience, "a slow span of at least "+injected.String()+" is exported", func() (bool, error) {
		if exited, status := client.exited(); exited {
			return false, fmt.Errorf("the client ended (%v): %s", status, client.outputTail())
		}
		spans, err := c.spans()
		return slices.ContainsFunc(spans[before:], func(s otlp.Span) bool {
			return atLeastInjected(s) && s.End.After(result.begin)
		}), err
	})
	result.seen = time.Since(impaired)
	if err != nil {
		return result, err
	}
	if err := pause(ctx, 3*time.Second); err != nil {
		return result, err
	}
	spans, err := c.spans()
	for _, s := range spans[before:] {
		// One that began earlier was on its way before the wire was impaired.
		if s.Start.After(impaired) {
			result.spans = append(result.spans, s)
		}
	}
	if len(result.spans) == 0 {
		err = errors.Join(err, fmt.Errorf("none of %d slow spans began after the wire was impaired with %q", len(spans)-before, netem))
	}
	return result, err
}

// healthyRun sleeps until the event of each completion, as the ping-pong does.
func healthyRun() perftest.Run {
	return perftest.Run{Tool: perftest.ReadLatency, Iterations: 600, Size: 64, Events: true}
}

// noneSeemsSlow runs a client over a healthy wire and holds its slow spans against its
// own account of its iterations. What the scheduler of an emulated machine and a busy
// host make slow is slow for both. When hardly anything is quick that says nothing, and
// is done again.
func (g *Guest) noneSeemsSlow(ctx context.Context, c *collector) (string, error) {
	var busy error
	for range attempts {
		output, err := g.runPair(ctx, healthyRun())
		if err != nil {
			return "", err
		}
		theirs, err := iterations(output)
		if err != nil {
			return "", err
		}
		// Once its work is exported, so are its spans.
		if _, err := c.reconciles(ctx, healthyRun()); err != nil {
			return "", err
		}
		spans, err := c.spans()
		if err != nil {
			return "", err
		}
		text, err := accountedFor(spans, theirs)
		if !errors.Is(err, errAllSlow) {
			return text, err
		}
		busy = errors.Join(busy, err)
		if err := c.mark(ctx, g.worked()); err != nil {
			return "", err
		}
	}
	return "", busy
}

var errAllSlow = errors.New("most requests are slow over a healthy wire")

// accountedFor checks that no more spans are slow than iterations of the client. Each
// of those encloses our request, but for the last, which is not reported.
func accountedFor(spans []otlp.Span, theirs []time.Duration) (string, error) {
	slow := 0
	for _, t := range theirs {
		if t >= threshold {
			slow++
		}
	}
	text := fmt.Sprintf("over a healthy wire perftest saw %d of %d slow", slow, len(theirs))
	switch {
	case len(spans) > slow+1:
		return "", fmt.Errorf("%s, exported were %d slow spans, the longest of %s", text, len(spans), longest(spans))
	case slow > len(theirs)/2:
		return "", fmt.Errorf("%w: %s", errAllSlow, text)
	}
	return fmt.Sprintf("%s, exported were %d spans", text, len(spans)), nil
}

// awaitSends waits until the ping-pong is under way.
func (c *collector) awaitSends(ctx context.Context, client *process) error {
	return waitFor(ctx, patience, "a hundred messages were sent", func() (bool, error) {
		if exited, status := client.exited(); exited {
			return false, fmt.Errorf("the client ended (%v): %s", status, client.outputTail())
		}
		_, err := c.metrics()
		return c.total(completionsOf(pingpong, clientDevice, "send")) >= 100, err
	})
}

// spanCheck checks a span that was exported after the injection began.
type spanCheck func(s otlp.Span, begin time.Time, pids []int) error

func atLeastInjected(s otlp.Span) bool { return s.Duration() >= injected }

// checkNoisySpan passes over requests that lost no packet and were slow because
// the machine is: on a lossy wire most requests are not injected with anything.
func checkNoisySpan(s otlp.Span, begin time.Time, pids []int) error {
	if !atLeastInjected(s) {
		return nil
	}
	return checkSpan(s, begin, pids)
}

// checkSpan checks a span of a request that the impairment slowed down.
func checkSpan(s otlp.Span, begin time.Time, pids []int) error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("span %q of %s: "+format, append([]any{s.Name, s.Duration()}, args...)...))
	}
	if !atLeastInjected(s) {
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
	total := time.Duration(0)
	for _, stage := range stages(s) {
		total += stage
	}
	if (total - s.Duration()).Abs() > time.Microsecond {
		fail("its stages add up to %s", total)
	}
	return errors.Join(errs...)
}

// stages returns the stages of a span. One that cannot be read is as long as an
// hour, so that no sum is right.
func stages(s otlp.Span) map[string]time.Duration {
	found := map[string]time.Duration{}
	for key, value := range s.Attributes {
		stage, isStage := strings.CutPrefix(key, "rdma.wqe.stage.")
		if !isStage {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			seconds = time.Hour.Seconds()
		}
		found[stage] = time.Duration(seconds * float64(time.Second))
	}
	return found
}

// shortest is 0 when there are no spans.
func shortest(spans []otlp.Span) time.Duration {
	if len(spans) == 0 {
		return 0
	}
	return slices.MinFunc(spans, byDuration).Duration()
}

// longest is 0 when there are no spans.
func longest(spans []otlp.Span) time.Duration {
	if len(spans) == 0 {
		return 0
	}
	return slices.MaxFunc(spans, byDuration).Duration()
}

func byDuration(a, b otlp.Span) int { return int(a.Duration() - b.Duration()) }
