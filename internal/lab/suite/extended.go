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
	p, err := g.start("extended", filepath.Join(g.share, extendedProgram),
		clientDevice, fmt.Sprint(gidIndex), fmt.Sprint(messages), fmt.Sprint(bytes))
	if err != nil {
		return "", err
	}
	if err := p.wait(ctx, 2*patience); err != nil {
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
