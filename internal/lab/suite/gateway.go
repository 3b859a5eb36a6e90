package suite

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

const (
	gatewayPort     = 4317
	gatewayVariable = "GATEWAY=localhost:4317"
	// authorities is the file of those that the machine trusts.
	authorities = "/etc/ssl/certs/ca-certificates.crt"
)

const gatewayConfiguration = `
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: localhost:4317
        tls: {cert_file: DIR/gateway.crt, key_file: DIR/gateway.key}
exporters:
  file: {path: DIR/received.jsonl, flush_interval: 100ms}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [file]}
`

// startGateway starts a collector that takes what agents send, with a certificate that
// the machine trusts from now on, names it in the configuration of the package, and
// returns the traces that it gets.
func (g *Guest) startGateway(ctx context.Context) (*otlp.Tail, error) {
	certificate, key, err := selfSigned("localhost")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		filepath.Join(g.dir, "gateway.crt"):  certificate,
		filepath.Join(g.dir, "gateway.key"):  key,
		filepath.Join(g.dir, "gateway.yaml"): []byte(strings.ReplaceAll(gatewayConfiguration, "DIR", g.dir)),
		authorities:                          certificate,
		environment:                          []byte(gatewayVariable + "\nRDMA_TOKEN=token\n"),
	}
	for path, content := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil {
			return nil, err
		}
	}
	// The agent is another user.
	if err := os.Chmod(authorities, 0o644); err != nil {
		return nil, err
	}
	p, err := g.start("gateway", g.collectorPath, "--config", filepath.Join(g.dir, "gateway.yaml"))
	if err != nil {
		return nil, err
	}
	return otlp.NewTail(filepath.Join(g.dir, "received.jsonl")), waitListening(ctx, p, gatewayPort)
}

// selfSigned makes a certificate for a name, and its key, in PEM.
func selfSigned(name string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate for %s: %w", name, err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	var text bytes.Buffer
	err = errors.Join(err, pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return text.Bytes(), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: privateDER}), err
}
