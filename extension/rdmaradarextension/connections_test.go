package rdmaradarextension

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who holds connections open keeps others out for a while, and costs the agent no memory.
func TestConnectionsAreBounded(t *testing.T) {
	s := serve(t, func(cfg *Config) { cfg.HTTP.ReadTimeout, cfg.HTTP.ReadHeaderTimeout = time.Hour, time.Hour })
	held := make([]net.Conn, 0, maxConnections)
	for range maxConnections {
		held = append(held, s.say("GET / HTTP/1.1\r\n"))
	}
	over := s.say("")
	require.NoError(t, over.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err := over.Read(make([]byte, 1))
	require.Error(t, err)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server ends it")

	// Those that are held are answered, and there is room again when they end.
	_, err = io.WriteString(held[0], "Host: evil.example\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(held[0])
	require.NoError(t, err)
	assert.Contains(t, string(answer), "421 Misdirected Request")
	for _, connection := range held {
		require.NoError(t, connection.Close())
	}
	assert.Eventually(t, func() bool {
		response, err := client().Get(s.base)
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, 20*time.Second, 10*time.Millisecond)
}

func TestHeadersAreBounded(t *testing.T) {
	s := serve(t, nil)
	large := s.say("GET / HTTP/1.1\r\nHost: localhost\r\nLarge: " + strings.Repeat("a", 2*maxHeader) + "\r\n\r\n")
	answer, _ := io.ReadAll(large) // It may be reset, since not all was read.
	assert.Contains(t, string(answer), "431 Request Header Fields Too Large")
}

// Nothing of a body is waited for, kept or decoded, be it large, small or of no length:
// who sends one is refused, and loses the connection.
func TestBodiesAreNotRead(t *testing.T) {
	s := serve(t, func(cfg *Config) { cfg.HTTP.ReadTimeout = time.Hour })
	for request, status := range map[string]string{
		"POST / HTTP/1.1\r\nHost: evil.example":                    "421 Misdirected Request",
		"POST / HTTP/1.1\r\nHost: localhost":                       "403 Forbidden",
		"POST /" + testToken + "/view HTTP/1.1\r\nHost: localhost": "405 Method Not Allowed",
		"GET /" + testToken + "/view HTTP/1.1\r\nHost: localhost":  "413 Request Entity Too Large",
	} {
		for _, body := range []string{"Content-Length: 19000000", "Content-Length: 200000", "Content-Length: 1", "Transfer-Encoding: chunked"} {
			asking := s.say(request + "\r\nContent-Encoding: snappy\r\n" + body + "\r\n\r\n")
			require.NoError(t, asking.SetReadDeadline(time.Now().Add(20*time.Second)))
			answer, err := io.ReadAll(asking)
			require.NoError(t, err, "%s, %s", request, body)
			assert.Contains(t, string(answer), "HTTP/1.1 "+status, "%s, %s", request, body)
		}
	}
}

// Who is refused does not keep one of the connections, which would keep others out.
func TestRefusedConnectionsEnd(t *testing.T) {
	s := serve(t, nil)
	for _, request := range []string{"GET / HTTP/1.1\r\nHost: evil.example", "GET / HTTP/1.1\r\nHost: localhost", "PUT /" + testToken + "/ HTTP/1.1\r\nHost: localhost"} {
		asking := s.say(request + "\r\n\r\n")
		require.NoError(t, asking.SetReadDeadline(time.Now().Add(20*time.Second)))
		answer, err := io.ReadAll(asking)
		require.NoError(t, err, request)
		assert.Contains(t, string(answer), "Connection: close", request)
	}
}
