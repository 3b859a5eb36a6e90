package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

// pair is a perftest client and its server.
type pair struct {
	run            perftest.Run
	client, server *process
}

// startPair starts the server on one device, and the client on the other when
// the server listens; both prefixed by the words of a wrapper.
func (g *Guest) startPair(ctx context.Context, r perftest.Run, wrapper ...string) (*pair, error) {
	server, err := g.start(string(r.Tool)+"-server", append(wrapper, r.Arguments(serverDevice, gidIndex, "")...)...)
	if err != nil {
		return nil, err
	}
	port := r.Port
	if port == 0 {
		port = perftest.DefaultPort
	}
	if err := waitListening(ctx, server, port); err != nil {
		return nil, err
	}
	client, err := g.start(string(r.Tool)+"-client", append(wrapper, r.Arguments(clientDevice, gidIndex, serverAddress)...)...)
	if err != nil {
		return nil, err
	}
	return &pair{run: r, client: client, server: server}, nil
}

// runPair runs a pair to its end and returns the client's output.
func (g *Guest) runPair(ctx context.Context, r perftest.Run) (string, error) {
	p, err := g.startPair(ctx, r)
	if err != nil {
		return "", err
	}
	return p.wait(ctx, 2*patience)
}

// mostTries is how often perftest may fail to calibrate its clock.
const mostTries = 8

func uncalibrated(r perftest.Run) error {
	return fmt.Errorf("%s could not calibrate its clock in %d runs: the host is too busy", r.Tool, mostTries)
}

// kill ends both, the client first.
func (p *pair) kill() {
	p.client.kill()
	p.server.kill()
}

// wait waits until both ended well and returns the client's output.
func (p *pair) wait(ctx context.Context, limit time.Duration) (string, error) {
	if err := errors.Join(p.client.wait(ctx, limit), p.server.wait(ctx, patience)); err != nil {
		return "", err
	}
	output, err := p.client.output()
	if err == nil && !perftest.UsesClassicInterface(output) {
		err = fmt.Errorf("%s does not say that it used post_send, so its work is not known: %s", p.run.Tool, p.client.outputTail())
	}
	return output, err
}

// waitListening waits until a TCP port is listened on.
func waitListening(ctx context.Context, server *process, port int) error {
	suffix := fmt.Sprintf(":%04X", port)
	return waitFor(ctx, patience, fmt.Sprintf("%s listens on port %d", server.name(), port), func() (bool, error) {
		if exited, status := server.exited(); exited {
			return false, fmt.Errorf("it ended (%v): %s", status, server.outputTail())
		}
		for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			data, err := os.ReadFile(table)
			if err != nil {
				return false, err
			}
			if listens(string(data), suffix) {
				return true, nil
			}
		}
		return false, nil
	})
}

// listens looks for a socket in state 0A, LISTEN.
func listens(table, suffix string) bool {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], suffix) && f[3] == "0A" {
			return true
		}
	}
	return false
}
