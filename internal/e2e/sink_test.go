//go:build backends

package e2e

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	// What the collector calls zstd on gRPC.
	_ "github.com/mostynb/go-grpc-compression/nonclobbering/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
)

// sink takes OTLP and keeps every request in the JSON of the file exporter.
type sink struct {
	mu       sync.Mutex
	requests []string
	// ids are those of the spans among them.
	ids map[string]bool
	// ways are those in which requests came.
	ways map[way]bool
}

// way is how a request comes: compressed or not, from a client with a certificate of
// that name, with a header "authorization".
type way struct{ compression, client, authorization string }

func newSink() *sink {
	return &sink{ids: map[string]bool{}, ways: map[way]bool{}}
}

// received returns the requests so far.
func (s *sink) received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// spans returns the ids of the spans so far.
func (s *sink) spans() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.ids)
}

// came returns the ways in which requests came so far.
func (s *sink) came() map[way]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.ways)
}

func (s *sink) take(text []byte, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.requests = append(s.requests, string(text))
	}
	return err
}

func (s *sink) takeTraces(data ptrace.Traces) error {
	s.mu.Lock()
	addSpans(s.ids, data)
	s.mu.Unlock()
	return s.take((&ptrace.JSONMarshaler{}).MarshalTraces(data))
}

func (s *sink) takeMetrics(data pmetric.Metrics) error {
	return s.take((&pmetric.JSONMarshaler{}).MarshalMetrics(data))
}

func (s *sink) takeLogs(data plog.Logs) error {
	return s.take((&plog.JSONMarshaler{}).MarshalLogs(data))
}

// note remembers how a request came.
func (s *sink) note(w way, connection *tls.ConnectionState) {
	if connection != nil && len(connection.PeerCertificates) > 0 {
		w.client = connection.PeerCertificates[0].Subject.CommonName
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ways[w] = true
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	return listener
}

// serveGRPC takes OTLP/gRPC on an address until the end of the test, and returns where
// that is.
func (s *sink) serveGRPC(t *testing.T, address string, secure *tls.Config) string {
	t.Helper()
	listener := listen(t, address)
	options := []grpc.ServerOption{grpc.StatsHandler(grpcWatch{s})}
	if secure != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(secure)))
	}
	server := grpc.NewServer(options...)
	ptraceotlp.RegisterGRPCServer(server, &grpcTraces{sink: s})
	pmetricotlp.RegisterGRPCServer(server, &grpcMetrics{sink: s})
	plogotlp.RegisterGRPCServer(server, &grpcLogs{sink: s})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		assert.NoError(t, <-served)
	})
	return listener.Addr().String()
}

// grpcWatch notes how requests come.
type grpcWatch struct{ sink *sink }

func (grpcWatch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (grpcWatch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (grpcWatch) HandleConn(context.Context, stats.ConnStats)                       {}

func (g grpcWatch) HandleRPC(ctx context.Context, event stats.RPCStats) {
	header, is := event.(*stats.InHeader)
	if !is {
		return
	}
	w := way{compression: header.Compression, authorization: strings.Join(header.Header.Get("authorization"), ", ")}
	var connection *tls.ConnectionState
	if from, known := peer.FromContext(ctx); known {
		if info, is := from.AuthInfo.(credentials.TLSInfo); is {
			connection = &info.State
		}
	}
	g.sink.note(w, connection)
}

type grpcTraces struct {
	ptraceotlp.UnimplementedGRPCServer
	sink *sink
}

func (g *grpcTraces) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	return ptraceotlp.NewExportResponse(), g.sink.takeTraces(request.Traces())
}

type grpcMetrics struct {
	pmetricotlp.UnimplementedGRPCServer
	sink *sink
}

func (g *grpcMetrics) Export(_ context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	return pmetricotlp.NewExportResponse(), g.sink.takeMetrics(request.Metrics())
}

type grpcLogs struct {
	plogotlp.UnimplementedGRPCServer
	sink *sink
}

func (g *grpcLogs) Export(_ context.Context, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return plogotlp.NewExportResponse(), g.sink.takeLogs(request.Logs())
}

// serveHTTP takes OTLP/HTTP until the end of the test, and returns the URL for the
// exporter.
func (s *sink) serveHTTP(t *testing.T, secure *tls.Config) string {
	t.Helper()
	listener, scheme := listen(t, "localhost:0"), "http://"
	url := listener.Addr().String()
	if secure != nil {
		listener, scheme = tls.NewListener(listener, secure), "https://"
	}
	server := &http.Server{Handler: s}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		assert.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return scheme + url
}

// ServeHTTP answers a request as OTLP/HTTP lays down: an empty message is a success.
func (s *sink) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	s.note(way{request.Header.Get("Content-Encoding"), "", request.Header.Get("Authorization")}, request.TLS)
	body, err := bodyOf(request)
	if err == nil {
		err = s.takeBody(request.URL.Path, body)
	}
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	answer.Header().Set("Content-Type", "application/x-protobuf")
}

func bodyOf(request *http.Request) ([]byte, error) {
	if request.Header.Get("Content-Encoding") == "" {
		return io.ReadAll(request.Body)
	}
	unzipped, err := gzip.NewReader(request.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unzipped)
}

func (s *sink) takeBody(path string, body []byte) error {
	switch path {
	case "/v1/traces":
		request := ptraceotlp.NewExportRequest()
		return errors.Join(request.UnmarshalProto(body), s.takeTraces(request.Traces()))
	case "/v1/metrics":
		request := pmetricotlp.NewExportRequest()
		return errors.Join(request.UnmarshalProto(body), s.takeMetrics(request.Metrics()))
	case "/v1/logs":
		request := plogotlp.NewExportRequest()
		return errors.Join(request.UnmarshalProto(body), s.takeLogs(request.Logs()))
	default:
		return errors.New("no such path")
	}
}
