package rdmaradarextension

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// certify writes a certificate of localhost and its key into files, and returns who
// trusts it.
func certify(t *testing.T) (certificate, key string, trusting *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	parsed, err := x509.ParseCertificate(signed)
	require.NoError(t, err)
	trusting = x509.NewCertPool()
	trusting.AddCert(parsed)
	return write("radar.pem", "CERTIFICATE", signed), write("radar.key", "PRIVATE KEY", secret), trusting
}

// serveTLS serves the page with a certificate, and returns who trusts it.
func serveTLS(t *testing.T) (served, *http.Client) {
	t.Helper()
	certificate, key, trusting := certify(t)
	s := serve(t, func(cfg *Config) {
		files := map[string]any{"cert_file": certificate, "key_file": key}
		require.NoError(t, confmap.NewFromStringMap(map[string]any{"tls": files}).Unmarshal(cfg))
	})
	trusts := client()
	transport := trusts.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: trusting}
	transport.ForceAttemptHTTP2 = true
	return s, trusts
}

// With a certificate the page, its view and its stream are there by https, and nothing is
// without: neither by http, nor for who does not trust the certificate.
func TestPageOverTLS(t *testing.T) {
	s, trusts := serveTLS(t)
	defer s.Show(tracing())()
	require.True(t, strings.HasPrefix(s.base, "https://localhost:"), s.base)
	get := func(name string) *http.Response {
		t.Helper()
		response, err := trusts.Get(s.base + name)
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		require.Equal(t, http.StatusOK, response.StatusCode, name)
		assert.GreaterOrEqual(t, response.TLS.Version, uint16(tls.VersionTLS12))
		return response
	}
	page, err := io.ReadAll(get("").Body)
	require.NoError(t, err)
	assert.Contains(t, string(page), "RDMA radar")
	var view radar.View
	require.NoError(t, json.NewDecoder(get("view").Body).Decode(&view))
	assert.Equal(t, "node-1", view.Node.Host)
	lines := linesOf(get("events"))
	for range 2 {
		assert.Equal(t, 1, next(t, lines).Now.Queues)
	}

	plain := s.ask(http.MethodGet, strings.Replace(s.base, "https", "http", 1)+"view", "")
	assert.Equal(t, http.StatusBadRequest, plain.status)
	assert.NotContains(t, plain.body, "node-1")
	_, err = client().Get(s.base + "view")
	assert.ErrorContains(t, err, "certificate signed by unknown authority")
}
