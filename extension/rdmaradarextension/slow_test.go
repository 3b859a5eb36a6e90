package rdmaradarextension

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// say sends bytes to the server and leaves the connection open.
func (s served) say(text string) net.Conn {
	s.t.Helper()
	connection, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(s.origin(), "http://"), "/"))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = connection.Close() })
	_, err = io.WriteString(connection, text)
	require.NoError(s.t, err)
	return connection
}

// Anybody on the node may begin a request: without a token too it must not keep the
// collector from ending, which sets no limit.
func TestShutdownWaitsForNobody(t *testing.T) {
	for name, test := range map[string]struct {
		begun string
		// queues make a view larger than what the kernel holds for a reader.
		queues int
	}{
		"body":   {"POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000\r\n\r\n", 1},
		"header": {"GET / HTTP/1.1\r\nHost: evil.example\r\n", 1},
		"reader": {fmt.Sprintf("GET /%s/view HTTP/1.1\r\nHost: localhost\r\n\r\n", testToken), 30_000},
	} {
		s := serve(t, nil)
		state := tracing()
		look(state, test.queues)
		defer s.Show(state)()
		s.say(test.begun)
		time.Sleep(300 * time.Millisecond)
		began := time.Now()
		require.NoError(t, s.Shutdown(t.Context()), name)
		assert.Less(t, time.Since(began), endLimit+6*time.Second, name)
	}
}

func TestRequestHasToComeInInTime(t *testing.T) {
	assert.Equal(t, readLimit, createDefaultConfig().(*Config).HTTP.ReadTimeout)
	s := serve(t, func(cfg *Config) { cfg.HTTP.ReadTimeout = 200 * time.Millisecond })
	lines := s.stream()
	slow := s.say("POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000\r\n\r\n")
	require.NoError(t, slow.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err := io.ReadAll(slow)
	require.NoError(t, err, "the server ends the connection")
	for range 2 {
		next(t, lines)
	}
}
