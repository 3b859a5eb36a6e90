//go:build e2e

package config

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// nothing is a configuration that telemetry can be added to.
const nothing = `receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
exporters: {debug: {}}
service: {pipelines: {metrics: {receivers: [otlp], exporters: [debug]}}}
`

// authority makes a certificate for localhost that nobody else has signed, and leaves it in
// a file.
func authority(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

// gateway says of each connection whether its client trusts the certificate.
func gateway(t *testing.T, certificate tls.Certificate) (string, <-chan error) {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	met := make(chan error, 64)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			served := tls.Server(connection, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}})
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			met <- served.HandshakeContext(ctx)
			cancel()
			_ = connection.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return "localhost:" + port, met
}

// startWithTelemetry starts a collector with the configuration that ships, but for its port
// and that it sends at once.
func startWithTelemetry(t *testing.T, variables []string) {
	t.Helper()
	text, err := os.ReadFile(telemetry)
	require.NoError(t, err)
	here := string(text)
	for shipped, ours := range map[string]string{"port: 8888": fmt.Sprintf("port: %d", testbed.FreePort(t)), "interval: 30000": "interval: 200"} {
		require.Contains(t, here, shipped)
		here = strings.Replace(here, shipped, ours, 1)
	}
	path := filepath.Join(t.TempDir(), "telemetry.yaml")
	require.NoError(t, os.WriteFile(path, []byte(here), 0o600))
	command := exec.CommandContext(t.Context(), collector, "--config", "yaml:"+nothing, "--config", path)
	command.Env = variables
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}

// What the collector tells of itself gets to a gateway with a certificate of an authority
// of one's own, by the variable that agent.yaml is told of it with.
func TestTelemetryTrustsOnesOwnAuthority(t *testing.T) {
	certificate, file := authority(t)
	for name, test := range map[string]struct {
		variables []string
		trusted   bool
	}{
		"named":     {[]string{"SSL_CERT_FILE=" + file}, true},
		"not named": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			address, met := gateway(t, certificate)
			startWithTelemetry(t, append(test.variables, "GATEWAY="+address, "RDMA_TOKEN=token"))
			select {
			case err := <-met:
				assert.Equal(t, test.trusted, err == nil, "%v", err)
			case <-time.After(time.Minute):
				t.Fatal("it did not connect")
			}
		})
	}
}
