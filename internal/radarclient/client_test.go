package radarclient

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onSocket serves a handler on a socket, and returns its path.
func onSocket(t *testing.T, handler http.Handler) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "radar.sock")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(handler)
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return path
}

// running is the least that a view says.
const running = `{"tracing":{"phase":"running"}}`

func answering(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
}

// hostile is what a terminal must not get.
const hostile = "\x1b]0;title\x07\x9b31m\u202e"

func hostileView() radar.View {
	rank := 7
	return radar.View{
		Tracing: radar.Tracing{Phase: radar.Failed, Reason: hostile},
		Queues: radar.QueueTable{
			QP: []uint32{1}, Process: []int{0}, State: []string{hostile}, Peers: []string{hostile},
			Processes: []radar.Process{{Name: hostile, Rank: &rank}}, Troubles: map[int]radar.Trouble{0: {Cause: hostile}},
		},
		Incidents: []radar.Incident{{Subject: hostile, For: []string{hostile}, Queues: []radar.QueueName{{Device: hostile}}}},
		Machine:   radar.Machine{Devices: []radar.Device{{Name: hostile, Place: radar.Place{PCI: hostile}}}},
		Books:     radar.Books{Lost: map[string]uint64{hostile: 3}},
	}
}

// Who answers need not be a collector: nothing of it reaches a terminal as it is.
func TestTextsAreCleaned(t *testing.T) {
	body, err := json.Marshal(hostileView())
	require.NoError(t, err)
	view, err := OnSocket(onSocket(t, answering(string(body)))).View(t.Context())
	require.NoError(t, err)
	got, err := json.Marshal(view)
	require.NoError(t, err)
	for _, escaped := range []string{`\u001b`, `\u0007`, "\u202e", "\u009b"} {
		assert.Contains(t, string(body)+"\u009b", escaped)
		assert.NotContains(t, string(got), escaped)
	}
	assert.Equal(t, "\uFFFD]0;title\uFFFD\uFFFD31m\uFFFD", view.Queues.Processes[0].Name)
	assert.Equal(t, 7, *view.Queues.Processes[0].Rank)
	assert.Equal(t, map[string]uint64{"\uFFFD]0;title\uFFFD\uFFFD31m\uFFFD": 3}, view.Books.Lost)
	assert.Contains(t, view.Queues.Troubles[0].Cause, "title")
}

// Nor does it in an error, also where that quotes what is no header, or no number.
func TestErrorsAreCleaned(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\n"
	for name, sent := range map[string]string{
		"header":  answer + hostile + "\r\n\r\n",
		"trailer": answer + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + hostile + "\r\n\r\n",
		"key":     answer + "\r\n" + `{"queues":{"troubles":{"\u001b]0;title\u0007":{}}}}`,
		"number":  answer + "\r\n" + `{"at":` + strings.Repeat("1", 2*maxText) + `}`,
	} {
		client := OnSocket(onSocket(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = connection.Write([]byte(sent))
				_ = connection.Close()
			}
		})))
		_, err := client.View(t.Context())
		require.Error(t, err, name)
		assert.False(t, strings.ContainsFunc(err.Error(), unicode.IsControl), "%s: %q", name, err)
		assert.Less(t, len(err.Error()), 2*maxText, name)
	}
}

func TestPeerIsKnown(t *testing.T) {
	client := OnSocket(onSocket(t, answering(running)))
	assert.Zero(t, client.PID())
	_, err := client.View(t.Context())
	require.NoError(t, err)
	assert.Equal(t, os.Getpid(), client.PID())
}

func TestAddressWithToken(t *testing.T) {
	const token = "0123456789abcdef"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/"+token+"/view":
			http.Error(w, "no\x1b[31m", http.StatusForbidden)
		default:
			_, _ = w.Write([]byte(`{"node":{"host":"node-1"},"tracing":{"phase":"running"}}`))
		}
	}))
	defer server.Close()
	for _, address := range []string{server.URL + "/" + token, server.URL + "/" + token + "/"} {
		client, err := AtURL(address)
		require.NoError(t, err)
		view, err := client.View(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "node-1", view.Node.Host)
		assert.Equal(t, server.URL, client.Where())
	}
	client, err := AtURL(server.URL + "/secret-of-another/")
	require.NoError(t, err)
	_, err = client.View(t.Context())
	require.ErrorIs(t, err, ErrDenied)
	assert.ErrorContains(t, err, "refuses: 403: no\uFFFD[31m")
	assert.NotContains(t, err.Error(), "secret-of-another")
	for _, address := range []string{"", "localhost:55690", "/run/radar.sock", "ftp://host/", "http://", "http://a b/"} {
		_, err := AtURL(address)
		assert.ErrorContains(t, err, "is not the address of a radar page", address)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	left := filepath.Join(t.TempDir(), "left.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: left})
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	unused := httptest.NewServer(answering(""))
	unused.Close()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	nobody, err := AtURL(unused.URL + "/token-that-is-secret/")
	require.NoError(t, err)
	for name, test := range map[string]struct {
		client *Client
		wraps  error
		says   string
	}{
		"no socket":       {OnSocket(filepath.Join(t.TempDir(), "no.sock")), ErrNotRunning, "Start otelcol-rdma with the extension rdma_radar"},
		"left behind":     {OnSocket(left), ErrNotRunning, "a collector that was killed has left the socket"},
		"nobody there":    {nobody, ErrNotRunning, "connection refused"},
		"a file":          {OnSocket(file), ErrNotRunning, "that is no socket. Name the one of the key socket"},
		"a directory":     {OnSocket(t.TempDir()), ErrNotRunning, "that is no socket"},
		"a device":        {OnSocket(os.DevNull), ErrNotRunning, "that is no socket"},
		"not a radar":     {OnSocket(onSocket(t, answering("hello"))), nil, "is no view of a radar"},
		"another service": {OnSocket(onSocket(t, http.NotFoundHandler())), nil, "refuses: 404"},
	} {
		_, err := test.client.View(t.Context())
		require.ErrorContains(t, err, test.says, name)
		assert.NotContains(t, err.Error(), "secret", name)
		if test.wraps != nil {
			assert.ErrorIs(t, err, test.wraps, name)
		}
	}
}

// A collector may be so busy that it does not answer.
func TestNoAnswerInTime(t *testing.T) {
	stuck := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := OnSocket(onSocket(t, stuck)).View(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "does not answer: it is very busy, or stuck")
	assert.NotErrorIs(t, err, ErrNotRunning)
}

// A collector may end while it is asked.
func TestCollectorThatEnds(t *testing.T) {
	ends := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = connection.Close()
		}
	})
	_, err := OnSocket(onSocket(t, ends)).View(t.Context())
	require.ErrorIs(t, err, ErrNotRunning)
	assert.ErrorContains(t, err, "it ended while it was asked")
}

func TestDenied(t *testing.T) {
	path := onSocket(t, answering("{}"))
	err := OnSocket(path).explain(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)})
	require.ErrorIs(t, err, ErrDenied)
	assert.ErrorContains(t, err, "permission denied: be root")
}

// streaming sends lines and ends.
func streaming(lines ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/events" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(strings.Join(lines, "")))
	})
}

func TestWatch(t *testing.T) {
	long := strings.Repeat("a", 3<<20)
	client := OnSocket(onSocket(t, streaming("event: view\ndata: {\"at\":1,\"tracing\":{\"phase\":\"running\"}}\n\n", ": comment\n\n", "data: {\"at\":2,\"tracing\":{\"phase\":\"starting\"},\"node\":{\"host\":\""+long+"\"}}\n\n", "data: {\"at\":3")))
	var seen []int64
	err := client.Watch(t.Context(), func(view radar.View) error {
		seen = append(seen, view.At)
		return nil
	})
	require.ErrorContains(t, err, "has ended")
	assert.Equal(t, []int64{1, 2}, seen, "half an event is none")

	stop := errors.New("enough")
	assert.ErrorIs(t, client.Watch(t.Context(), func(radar.View) error { return stop }), stop)

	ctx, cancel := context.WithCancel(t.Context())
	assert.NoError(t, client.Watch(ctx, func(radar.View) error {
		cancel()
		return nil
	}))
}
