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

// agent sends what its node exports to a gateway, as config/agent.yaml has it but for
// TLS: a collection is a request.
type agent struct {
	node   *node
	client pmetricotlp.GRPCClient
	// wire counts the bytes that went out of its connection.
	wire *atomic.Int64
}

func newAgent(t *testing.T, n *node, gateway string) *agent {
	t.Helper()
	a := &agent{node: n, wire: &atomic.Int64{}}
	connection, err := grpc.NewClient(gateway, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.UseCompressor(zstd.Name)), grpc.WithContextDialer(a.dial))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, connection.Close()) })
	a.client = pmetricotlp.NewGRPCClient(connection)
	return a
}

func (a *agent) dial(ctx context.Context, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	return countedConn{connection, a.wire}, err
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

// send sends a collection of that time, and again for as long as the gateway is out of
// memory, which a busy machine may bring about.
func (a *agent) send(ctx context.Context, at time.Time) error {
	request := pmetricotlp.NewExportRequestFromMetrics(a.node.collect(at))
	answer, err := a.client.Export(ctx, request)
	for status.Code(err) == codes.Unavailable && time.Since(at) < testbed.Patience {
		if err := launch.Sleep(ctx, time.Second); err != nil {
			return err
		}
		answer, err = a.client.Export(ctx, request)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", a.node.name, err)
	}
	if rejected := answer.PartialSuccess(); rejected.RejectedDataPoints() != 0 {
		return fmt.Errorf("%s: %d points were rejected: %s", a.node.name, rejected.RejectedDataPoints(), rejected.ErrorMessage())
	}
	return nil
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
