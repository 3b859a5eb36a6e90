package suite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

// extendedProgram is internal/lab/extended, built on the host.
const extendedProgram = "extended"

// extendedIsSeen sends with a program that knows the extended verbs alone: its
// requests and completions go through functions that its objects point to.
func extendedIsSeen(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	const messages, bytes = 400, 512
	if err := g.introduceExtended(ctx, c); err != nil {
		return "", err
	}
	if err := g.runExtended(ctx, extendedProgram, messages, bytes); err != nil {
		return "", err
	}
	expected := []sum{
		{completionsOf(extendedProgram, clientDevice, "send"), messages},
		{completionsOf(extendedProgram, clientDevice, "recv"), messages},
		{bytesOf(extendedProgram, clientDevice, "transmit"), messages * bytes},
		{bytesOf(extendedProgram, clientDevice, "receive"), messages * bytes},
	}
	if err := errors.Join(c.settles(ctx, expected), c.balance(ctx)); err != nil {
		return "", err
	}
	h := c.histogram(otlp.Match{Service: extendedProgram, Metric: "rdma.wqe.duration"})
	if h.Count != messages {
		return "", fmt.Errorf("rdma.wqe.duration holds %d durations, %d sends completed", h.Count, messages)
	}
	return fmt.Sprintf("%d sends and receives of %d bytes, every send timed", messages, bytes), nil
}

// runExtended runs the program under a name.
func (g *Guest) runExtended(ctx context.Context, service string, messages, bytes int) error {
	p, err := g.start(service, "env", "OTEL_SERVICE_NAME="+service, filepath.Join(g.share, extendedProgram),
		clientDevice, fmt.Sprint(gidIndex), fmt.Sprint(messages), fmt.Sprint(bytes))
	if err != nil {
		return err
	}
	return p.wait(ctx, 2*patience)
}

// introduceExtended runs the program until some of its completions are seen: the
// programs on polls through the extended verbs are loaded for the first process that
// has such objects, which takes longer here than this one lives.
func (g *Guest) introduceExtended(ctx context.Context, c *collector) error {
	const service = "extended-first"
	return waitFor(ctx, 2*patience, "a completion through the extended verbs is seen", func() (bool, error) {
		if err := g.runExtended(ctx, service, 20, 64); err != nil {
			return false, err
		}
		_, err := c.metrics()
		return err == nil && c.total(completionsOf(service, clientDevice, "send")) > 0, err
	})
}

// newPostSendIsSeen runs ibv_rc_pingpong as it posts through ibv_qp_ex; it polls
// with ibv_poll_cq.
func newPostSendIsSeen(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	const messages = 500
	client, server, err := g.startPingpong(ctx, messages, "-N")
	if err != nil {
		return "", err
	}
	if err := errors.Join(client.wait(ctx, 2*patience), server.wait(ctx, 2*patience)); err != nil {
		return "", err
	}
	if err := errors.Join(c.settles(ctx, pingpongSums(messages)), c.balance(ctx)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d sends and receives of each side", messages), nil
}
