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

// impairmentIsSeen runs a ping-pong over a healthy wire and expects no slow
// span, then impairs the wire and expects one of at least the injected size
// within 5 s. Each span is checked.
func impairmentIsSeen(ctx context.Context, g *Guest, netem string, check spanCheck) (string, []otlp.Span, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", nil, err
	}
	if err := impair(ctx, healthyWire); err != nil {
		return "", nil, err
	}
	stalls, err := g.startStallWitness()
	if err != nil {
		return "", nil, err
	}
	// Whatever else the one CPU does is to make no request slow: both ends sleep
	// and come first when they wake up, the collector comes last.
	if err := c.setNice(19); err != nil {
		return "", nil, err
	}
	defer func() { _ = c.setNice(0) }()
	client, server, err := g.startPingpongBy(ctx, []string{"chrt", "--fifo", "50"}, endless)
	if err != nil {
		return "", nil, err
	}
	healthy, err := c.healthyWindow(ctx, stalls)
	if err != nil {
		return "", nil, err
	}
	var injection injectionResult
	err = prompt(spanDeadline, func() (_ time.Duration, err error) {
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
	return healthy + "; then " + injection.String(), injection.spans, errors.Join(err, c.balance(ctx))
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

// The scheduler of an emulated machine makes a request slow now and then, so one
// quiet window among a few is asked for, and a few slow ones of its hundreds are
// forgiven: a tracer that sees slowness where there is none fails them all. What
// a busy host did to the guest is taken out first.
const (
	healthyWindows = 12
	forgivenShare  = 0.005
	windowLength   = 4 * time.Second
	// exportDelay is within what a slow request is exported.
	exportDelay = 2 * time.Second
)

// healthyWindow waits for a window in which many requests completed and none
// was slow.
func (c *collector) healthyWindow(ctx context.Context, stalls *stallWitness) (string, error) {
	var noise error
	for n := 1; n <= healthyWindows; n++ {
		text, err := c.quietFor(ctx, windowLength, stalls)
		if err == nil {
			return fmt.Sprintf("window %d of %s: %s", n, windowLength, text), nil
		}
		noise = errors.Join(noise, err)
	}
	return "", fmt.Errorf("no window of %s without a slow request over a healthy wire: %w", windowLength, noise)
}

// quietFor watches a window, and returns an error when a request was slow while
// the CPU ran or hardly any completed.
func (c *collector) quietFor(ctx context.Context, window time.Duration, stalls *stallWitness) (string, error) {
	if _, err := c.metrics(); err != nil {
		return "", err
	}
	sendsBefore, spansBefore := c.sends(), len(c.spansSinceMark)
	if err := pause(ctx, window+exportDelay); err != nil {
		return "", err
	}
	spans, err := c.spans()
	if err != nil {
		return "", err
	}
	gaps, err := stalls.gaps()
	if err != nil {
		return "", err
	}
	if _, err := c.metrics(); err != nil {
		return "", err
	}
	slow := unexplained(spans[spansBefore:], gaps)
	sends := c.sends() - sendsBefore
	switch {
	case sends < 100:
		return "", fmt.Errorf("only %.0f sends", sends)
	case float64(len(slow)) > forgivenShare*sends:
		return "", fmt.Errorf("%d slow spans of %d sends, the longest %s", len(slow), int(sends), longest(slow))
	}
	return fmt.Sprintf("%.0f sends, %d slow, and %d while the host kept the guest waiting", sends, len(slow), len(spans)-spansBefore-len(slow)), nil
}

// unexplained returns the spans that would have been slow had the CPU not stood
// still.
func unexplained(spans []otlp.Span, gaps []gap) []otlp.Span {
	var slow []otlp.Span
	for _, s := range spans {
		if s.Duration()-stalled(gaps, s.Start, s.End) >= threshold {
			slow = append(slow, s)
		}
	}
	return slow
}

func (c *collector) sends() float64 {
	return c.total(completionsOf(pingpong, clientDevice, "send"))
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
