//go:build backends

package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	// What the collector calls zstd on gRPC.
	"github.com/mostynb/go-grpc-compression/nonclobbering/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/rdmaradar/rdmaradar/internal/launch"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// agent sends the metrics of its node to a gateway: a collection is a request.
type agent struct {
	node   *node
	client pmetricotlp.GRPCClient
	// wire counts the bytes that went out of its connection.
	wire *atomic.Int64
}

func newAgent(t *testing.T, n *node, gateway string) *agent {
	t.Helper()
	connection, wire := connect(t, gateway)
	return &agent{node: n, wire: wire, client: pmetricotlp.NewGRPCClient(connection)}
}

// connect returns a connection to a gateway as config/agent.yaml has it but for TLS, and
// how many bytes went out of it.
func connect(t *testing.T, gateway string) (*grpc.ClientConn, *atomic.Int64) {
	t.Helper()
	wire := &atomic.Int64{}
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		return countedConn{connection, wire}, err
	}
	connection, err := grpc.NewClient(gateway, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.UseCompressor(zstd.Name)), grpc.WithContextDialer(dial))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, connection.Close()) })
	return connection, wire
}

// countedConn counts what is written.
type countedConn struct {
	net.Conn
	written *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// send sends a collection of that time.
func (a *agent) send(ctx context.Context, at time.Time) error {
	request := pmetricotlp.NewExportRequestFromMetrics(a.node.collect(at))
	answer, err := insist(ctx, at, func() (pmetricotlp.ExportResponse, error) { return a.client.Export(ctx, request) })
	if err != nil {
		return fmt.Errorf("%s: %w", a.node.name, err)
	}
	if rejected := answer.PartialSuccess(); rejected.RejectedDataPoints() != 0 {
		return fmt.Errorf("%s: %d points were rejected: %s", a.node.name, rejected.RejectedDataPoints(), rejected.ErrorMessage())
	}
	return nil
}

// insist tries again for as long as the gateway is out of memory, which a busy machine may
// bring about.
func insist[R any](ctx context.Context, since time.Time, export func() (R, error)) (R, error) {
	answer, err := export()
	for status.Code(err) == codes.Unavailable && time.Since(since) < testbed.Patience {
		if err := launch.Sleep(ctx, time.Second); err != nil {
			return answer, err
		}
		answer, err = export()
	}
	return answer, err
}

// sendAll has every agent send that many collections, one each interval, the first
// one at its own moment of the interval after a time. What is past is sent at once.
func sendAll(ctx context.Context, agents []*agent, from time.Time, collections int) error {
	errs := make(chan error, len(agents))
	for i, a := range agents {
		first := from.Add(interval * time.Duration(i) / time.Duration(len(agents)))
		go func() { errs <- a.sendEach(ctx, first, collections) }()
	}
	var all error
	for range agents {
		all = errors.Join(all, <-errs)
	}
	return all
}

func (a *agent) sendEach(ctx context.Context, first time.Time, collections int) error {
	for k := range collections {
		at := first.Add(time.Duration(k) * interval)
		if err := launch.Sleep(ctx, time.Until(at)); err != nil {
			return err
		}
		if err := a.send(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// sent is how many bytes went out of the connections of the agents.
func sent(agents []*agent) int64 {
	var total int64
	for _, a := range agents {
		total += a.wire.Load()
	}
	return total
}
