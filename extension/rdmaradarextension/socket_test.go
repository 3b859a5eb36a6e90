package rdmaradarextension

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rdmaradar/rdmaradar/extension/rdmaradarextension/internal/metadata"
)

// over asks over a socket.
func over(t *testing.T, path, method, url string) answer {
	t.Helper()
	local := client()
	local.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	response, err := local.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{status: response.StatusCode, header: response.Header, body: string(body)}
}

// On the socket there is no token, and no way to change anything.
func TestSocketBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "radar.sock")
	s := serve(t, func(cfg *Config) { cfg.Socket = path })
	defer s.Show(tracing())()
	view := over(t, path, http.MethodGet, "http://localhost/view")
	assert.Equal(t, http.StatusOK, view.status)
	assert.Contains(t, view.body, `"host":"node-1"`)
	assert.Contains(t, view.header.Get("Content-Security-Policy"), "default-src 'none'")
	assert.Equal(t, http.StatusMethodNotAllowed, over(t, path, http.MethodPost, "http://localhost/view").status)
	// The port is what it was.
	assert.Equal(t, http.StatusForbidden, s.ask(http.MethodGet, s.origin()+"view", "").status)
	assert.Equal(t, http.StatusOK, s.ask(http.MethodGet, s.base+"view", "").status)
}

// The mode of the file is the only boundary, whatever the umask of the collector is.
func TestSocketIsForOwnerAndGroup(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o077} {
		path := filepath.Join(t.TempDir(), "run", "radar.sock")
		before := syscall.Umask(mask)
		serve(t, func(cfg *Config) { cfg.Socket = path })
		syscall.Umask(before)
		assert.Equal(t, os.FileMode(0o660), modeOf(t, path), "umask %#o", mask)
		assert.Equal(t, os.FileMode(0o755), modeOf(t, filepath.Dir(path)), "umask %#o", mask)
	}
}

// Nor is it open to others before its mode is set: what opens it then stays in.
func TestSocketIsNeverForOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "radar.sock")
	before := syscall.Umask(0)
	listener, err := (&net.ListenConfig{Control: closeToOthers}).Listen(t.Context(), "unix", path)
	syscall.Umask(before)
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	assert.Equal(t, os.FileMode(0o660), modeOf(t, path))
}

func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Mode().Perm()
}

func TestSocketIsRemovedAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "radar.sock")
	s := serve(t, func(cfg *Config) { cfg.Socket = path })
	require.FileExists(t, path)
	require.NoError(t, s.Shutdown(t.Context()))
	assert.NoFileExists(t, path)
}

// It is left where another collector has made its own there since.
func TestSocketOfAnotherIsLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "radar.sock")
	for name, where := range map[string]func(*Config){
		"beside the page": func(cfg *Config) { cfg.Socket = path },
		"the page's own": func(cfg *Config) {
			cfg.HTTP.NetAddr.Transport, cfg.HTTP.NetAddr.Endpoint = confignet.TransportTypeUnix, path
		},
	} {
		first := serve(t, where)
		require.NoError(t, os.Remove(path), name)
		second := serve(t, where)
		require.NoError(t, first.Shutdown(t.Context()), name)
		assert.FileExists(t, path, name)
		require.NoError(t, second.Shutdown(t.Context()), name)
		assert.NoFileExists(t, path, name)
	}
}

// The page is served all the same, and the log says what to do about the socket.
func TestSocketThatCannotBeServed(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "radar.sock")
	serve(t, func(cfg *Config) { cfg.Socket = taken })
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, says := range map[string]string{
		taken: "another collector serves it",
		filepath.Join(t.TempDir(), "a", "b", "s"): "RuntimeDirectory=",
		file:                     "no socket: remove it",
		filepath.Join(file, "s"): "set socket to a path",
	} {
		core, logs := observer.New(zap.WarnLevel)
		settings := extensiontest.NewNopSettings(metadata.Type)
		settings.Logger = zap.New(core)
		cfg := createDefaultConfig().(*Config)
		cfg.HTTP.NetAddr.Endpoint, cfg.Socket = "localhost:0", path
		created, err := NewFactory().Create(t.Context(), settings, cfg)
		require.NoError(t, err)
		require.NoError(t, created.Start(t.Context(), componenttest.NewNopHost()), path)
		require.NoError(t, created.Shutdown(t.Context()))
		require.Len(t, logs.All(), 1, path)
		assert.Contains(t, logs.All()[0].ContextMap()["error"], says, path)
	}
	assert.FileExists(t, taken, "that of the other one stays")
}
