package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

// completionsOf selects the successful completions of a service's operation.
func completionsOf(service, device, operation string) otlp.Match {
	return otlp.Match{Service: service, Metric: "rdma.wqe.completions", Attributes: map[string]string{
		"rdma.device.name": device, "rdma.operation.name": operation, "error.type": "",
	}}
}

// bytesOf selects the bytes of a service in one direction.
func bytesOf(service, device, direction string) otlp.Match {
	return otlp.Match{Service: service, Metric: "rdma.io", Attributes: map[string]string{
		"rdma.device.name": device, "network.io.direction": direction,
	}}
}

// rpingIsSeen runs rping, whose connection is made by the connection manager.
// In each round the server reads from the client and writes to it, once each.
func rpingIsSeen(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	// Slow rounds: a process that lives for a moment is another test's matter.
	if err := impair(ctx, "delay 20ms"); err != nil {
		return "", err
	}
	const rounds = 25
	count := fmt.Sprint(rounds)
	server, err := g.start("server", "rping", "-s", "-a", serverAddress, "-C", count)
	if err != nil {
		return "", err
	}
	err = waitFor(ctx, patience, "rping listens", func() (bool, error) {
		out, err := run(ctx, "rdma", "resource", "show", "cm_id")
		return strings.Contains(out, "LISTEN"), err
	})
	if err != nil {
		return "", err
	}
	client, err := g.start("client", "rping", "-c", "-a", serverAddress, "-I", clientAddress, "-C", count)
	if err != nil {
		return "", err
	}
	// The server's own status is that of a connection the client closed.
	err = client.wait(ctx, 2*patience)
	server.kill()
	if err != nil {
		return "", err
	}
	expected := []sum{
		{completionsOf("rping", serverDevice, "rdma_read"), rounds},
		{completionsOf("rping", serverDevice, "rdma_write"), rounds},
	}
	if err := errors.Join(c.settles(ctx, expected), c.balance(ctx)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d reads and %d writes of the server", rounds, rounds), nil
}

// pingpongIsSeen runs ibv_rc_pingpong, sleeping between events: each side sends
// and receives every message once.
func pingpongIsSeen(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	if err := impair(ctx, "delay "+wireDelay.String()); err != nil {
		return "", err
	}
	const messages = 500
	client, server, err := g.startPingpong(ctx, messages)
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

const (
	pingpong     = "ibv_rc_pingpong"
	pingpongPort = 18515
)

// pingpongSums is what a pair that sends so many messages each comes to: each side
// sends and receives every message once.
func pingpongSums(messages uint64) []sum {
	var sums []sum
	for _, device := range []string{clientDevice, serverDevice} {
		for _, operation := range []string{"send", "recv"} {
			sums = append(sums, sum{completionsOf(pingpong, device, operation), messages})
		}
	}
	return sums
}

// startPingpong starts a pair of ibv_rc_pingpong that sleep until an event, with
// messages of one packet.
func (g *Guest) startPingpong(ctx context.Context, messages int, options ...string) (client, server *process, err error) {
	args := func(device string, peer ...string) []string {
		return append([]string{
			pingpong, "-e", "-d", device, "-g", fmt.Sprint(gidIndex), "-s", "512", "-n", fmt.Sprint(messages),
		}, append(options, peer...)...)
	}
	server, err = g.start("server", args(serverDevice)...)
	if err != nil {
		return nil, nil, err
	}
	if err := waitListening(ctx, server, pingpongPort); err != nil {
		return nil, nil, err
	}
	client, err = g.start("client", args(clientDevice, serverAddress)...)
	return client, server, err
}

// shortLivedIsNamed runs clients that each end within a fraction of a collection
// interval: their work must carry their name all the same.
func shortLivedIsNamed(ctx context.Context, g *Guest) (string, error) {
	c, err := g.runningCollector(ctx)
	if err != nil {
		return "", err
	}
	const pairs, messages = 6, 10
	begin := time.Now()
	for range pairs {
		client, server, err := g.startPingpong(ctx, messages)
		if err != nil {
			return "", err
		}
		if err := errors.Join(client.wait(ctx, 2*patience), server.wait(ctx, 2*patience)); err != nil {
			return "", err
		}
	}
	each := time.Since(begin) / pairs
	expected := []sum{
		{completionsOf(pingpong, clientDevice, "send"), pairs * messages},
		{completionsOf(pingpong, serverDevice, "send"), pairs * messages},
	}
	return fmt.Sprintf("%d pairs of %d messages, each pair took %s", pairs, messages, each.Round(time.Millisecond)), c.settles(ctx, expected)
}
