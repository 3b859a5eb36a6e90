package radarclient

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// addressVariable has a child of a test ask at an address.
const addressVariable = "RADARCLIENT_TEST_ADDRESS"

// An address may have https. The certificate has to be of somebody whom the machine
// trusts, or whom SSL_CERT_FILE names, and otherwise not even the token is sent.
func TestAddressOverTLS(t *testing.T) {
	if address := os.Getenv(addressVariable); address != "" {
		ask(t, address)
		return
	}
	const token = "0123456789abcdef"
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		assert.Equal(t, "/"+token+"/view", r.URL.Path)
		_, _ = w.Write([]byte(`{"node":{"host":"node-1"},"tracing":{"phase":"running"}}`))
	}))
	defer server.Close()
	address := server.URL + "/" + token + "/"
	client, err := AtURL(address)
	require.NoError(t, err)
	_, err = client.View(t.Context())
	require.ErrorContains(t, err, "set SSL_CERT_FILE to a file with the certificate of the authority")
	assert.NotErrorIs(t, err, ErrNotRunning)
	assert.NotContains(t, err.Error(), token)
	assert.Zero(t, asked.Load())

	// A process reads once whom to trust.
	file := filepath.Join(t.TempDir(), "radar.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, certificate, 0o600))
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestAddressOverTLS$")
	child.Env = append(os.Environ(), addressVariable+"="+address, "SSL_CERT_FILE="+file)
	said, err := child.CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.Contains(t, string(said), "the host is node-1")
	assert.EqualValues(t, 1, asked.Load())
}

// ask prints who answers at an address.
func ask(t *testing.T, address string) {
	t.Helper()
	client, err := AtURL(address)
	require.NoError(t, err)
	view, err := client.View(t.Context())
	require.NoError(t, err)
	fmt.Println("the host is", view.Node.Host)
}
