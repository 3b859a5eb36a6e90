package rdmaradarextension

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rdmaradar/rdmaradar/extension/rdmaradarextension/internal/metadata"
	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const testToken = "0123456789abcdefghij"

// served is an extension that serves its page.
type served struct {
	*radarExtension
	t *testing.T
	// base is the URL of the page.
	base string
}

// serve starts an extension on a free port; change may change its configuration.
func serve(t *testing.T, change func(*Config)) served {
	t.Helper()
	return serveBeside(t, componenttest.NewNopHost(), change)
}

// serveBeside does so in a collector with other extensions.
func serveBeside(t *testing.T, host component.Host, change func(*Config)) served {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	settings := extensiontest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	cfg := createDefaultConfig().(*Config)
	cfg.HTTP.NetAddr.Endpoint = "localhost:0"
	cfg.Token = testToken
	if change != nil {
		change(cfg)
	}
	created, err := NewFactory().Create(t.Context(), settings, cfg)
	require.NoError(t, err)
	require.NoError(t, created.Start(t.Context(), host))
	t.Cleanup(func() { assert.NoError(t, created.Shutdown(context.WithoutCancel(t.Context()))) })
	for _, entry := range logs.All() {
		if url, ok := entry.ContextMap()["url"].(string); ok {
			return served{radarExtension: created.(*radarExtension), t: t, base: url}
		}
	}
	t.Fatalf("the log does not tell the URL: %v", logs.All())
	return served{}
}

// client keeps no connection: each would be a goroutine that outlives the test.
func client() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is what came of a request, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask asks for an URL, as the host of that name where it is given.
func (s served) ask(method, url, host string) answer {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, url, nil)
	require.NoError(s.t, err)
	request.Host = host
	response, err := client().Do(request)
	require.NoError(s.t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return answer{status: response.StatusCode, header: response.Header, body: string(body)}
}

// origin is the URL without the token.
func (s served) origin() string { return strings.TrimSuffix(s.base, testToken+"/") }

// stream opens the stream of events; the end of the test ends it.
func (s served) stream() *bufio.Scanner {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"events", nil)
	require.NoError(s.t, err)
	response, err := client().Do(request)
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		cancel()
		_ = response.Body.Close()
	})
	require.Equal(s.t, http.StatusOK, response.StatusCode)
	require.Equal(s.t, "text/event-stream", response.Header.Get("Content-Type"))
	return linesOf(response)
}

// linesOf reads the lines of a stream.
func linesOf(response *http.Response) *bufio.Scanner {
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	return lines
}

// next reads the next event.
func next(t *testing.T, lines *bufio.Scanner) radar.View {
	t.Helper()
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var view radar.View
		require.NoError(t, json.Unmarshal([]byte(data), &view))
		return view
	}
	t.Fatalf("the stream has ended: %v", lines.Err())
	return radar.View{}
}

// tracing is a state with one queue.
func tracing() *radar.State {
	state := radar.NewState()
	state.Name(radar.Node{Host: "node-1"})
	state.Open(radar.Source{Identify: func(id verbs.ProcessID) radar.Process { return radar.Process{PID: id.TGID, Name: "trainer"} }})
	look(state, 1)
	return state
}

// look has so many queues seen.
func look(state *radar.State, queues int) {
	state.Look(time.Now(), &verbs.Snapshot{Queues: make([]verbs.QueueInfo, queues)}, nil)
}

func TestPageIsHealthyWithoutReceiver(t *testing.T) {
	s := serve(t, nil)
	page := s.ask(http.MethodGet, s.base, "")
	assert.Equal(t, http.StatusOK, page.status)
	assert.Contains(t, page.header.Get("Content-Type"), "text/html")
	assert.Contains(t, page.body, "RDMA radar")
	assert.Equal(t, radar.Absent, next(t, s.stream()).Tracing.Phase)
}

// What a person gets without the token says where it is, and not one byte of the
// page.
func TestNothingWithoutToken(t *testing.T) {
	s := serve(t, nil)
	for _, path := range []string{
		"", "view", "events", "main.js", "wrong/", "wrong/view", "wrong/events", testToken[:10] + "/view", testToken + "x/view",
		"../" + testToken + "x/", "//" + testToken + "/view", "?token=" + testToken,
	} {
		got := s.ask(http.MethodGet, s.origin()+path, "")
		assert.Equal(t, http.StatusForbidden, got.status, path)
		assert.Contains(t, got.body, "log of the collector", path)
	}
	assert.Equal(t, http.StatusMovedPermanently, s.ask(http.MethodGet, s.origin()+testToken, "").status)
}

// What would be redirected to where it leads would lose the token on the way.
func TestRoundaboutPathsLeadNowhere(t *testing.T) {
	s := serve(t, nil)
	for _, path := range []string{testToken + "//view", testToken + "%2fview", testToken + "/./view", testToken + "/../view", "%30" + testToken[1:] + "/view"} {
		assert.Equal(t, http.StatusNotFound, s.ask(http.MethodGet, s.origin()+path, "").status, path)
	}
}

func TestForeignHostsGetNothing(t *testing.T) {
	s := serve(t, func(cfg *Config) { cfg.AllowedHosts = []string{"node-1.Example.com", "10.0.0.7", "2001:DB8:0:0::5"} })
	for _, host := range []string{"evil.example", "localhost.evil.example", "127.0.0.1.nip.io:55690", "10.0.0.8", "[::2]:1", "localhost:1:2"} {
		got := s.ask(http.MethodGet, s.base+"view", host)
		assert.Equal(t, http.StatusMisdirectedRequest, got.status, host)
		assert.NotContains(t, got.body, "tracing", host)
	}
	for _, host := range []string{"localhost", "LOCALHOST:9999", "127.0.0.1:1", "[::1]:55690", "[::1]", "node-1.example.com:443", "10.0.0.7", "[2001:db8::5]:55690"} {
		assert.Equal(t, http.StatusOK, s.ask(http.MethodGet, s.base+"view", host).status, host)
	}
}

// The remedy is for what is wrong.
func TestRemedies(t *testing.T) {
	for name, test := range map[string]struct {
		transport confignet.TransportType
		err       error
		says      string
	}{
		"port in use":    {confignet.TransportTypeTCP, syscall.EADDRINUSE, "free it, set endpoint to another port"},
		"port of root":   {confignet.TransportTypeTCP, syscall.EACCES, "a port that the collector's user may listen on"},
		"no such name":   {confignet.TransportTypeTCP, &net.DNSError{}, "an address of this node"},
		"path in use":    {confignet.TransportTypeUnix, syscall.EADDRINUSE, "free it, set endpoint to another path"},
		"no such folder": {confignet.TransportTypeUnix, syscall.ENOENT, "a path that the collector's user may make"},
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.HTTP.NetAddr.Transport = test.transport
		e := newRadar(cfg, extensiontest.NewNopSettings(metadata.Type), testToken)
		assert.ErrorContains(t, e.cannotListen(&net.OpError{Err: test.err}), test.says, name)
	}
}

// Whoever is refused must not fill the collector's own metrics with names.
func TestNamesDoNotGetIntoMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	settings := extensiontest.NewNopSettings(metadata.Type)
	settings.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	cfg := createDefaultConfig().(*Config)
	cfg.HTTP.NetAddr.Transport = confignet.TransportTypeUnix
	cfg.HTTP.NetAddr.Endpoint = filepath.Join(t.TempDir(), "radar.sock")
	created, err := NewFactory().Create(t.Context(), settings, cfg)
	require.NoError(t, err)
	require.NoError(t, created.Start(t.Context(), componenttest.NewNopHost()))
	connection, err := net.Dial("unix", cfg.HTTP.NetAddr.Endpoint)
	require.NoError(t, err)
	_, err = io.WriteString(connection, "GET / HTTP/1.1\r\nHost: name-of-no-host.example\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadAll(connection)
	require.NoError(t, err)
	require.NoError(t, created.Shutdown(t.Context()))
	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	text, err := json.Marshal(got)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "name-of-no-host")
}

func TestPageCannotBeChanged(t *testing.T) {
	s := serve(t, nil)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
		got := s.ask(method, s.base+"view", "")
		assert.Equal(t, http.StatusMethodNotAllowed, got.status, method)
		assert.Equal(t, "GET, HEAD", got.header.Get("Allow"), method)
	}
	for _, path := range []string{"", "view", "events", "main.js"} {
		got := s.ask(http.MethodHead, s.base+path, "")
		assert.Equal(t, http.StatusOK, got.status, path)
		assert.Empty(t, got.body, path)
	}
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	s := serve(t, nil)
	for _, url := range []string{s.base, s.base + "view", s.base + "main.js", s.base + "no-such-file", s.origin()} {
		got := s.ask(http.MethodGet, url, "")
		header := got.header
		if got.status == http.StatusOK {
			assert.Equal(t, "no-store", header.Get("Cache-Control"), url)
		}
		policy := header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			assert.Contains(t, policy, part, url)
		}
		assert.NotContains(t, policy, "unsafe", url)
		assert.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), url)
		assert.Equal(t, "no-referrer", header.Get("Referrer-Policy"), url)
		assert.Equal(t, "same-origin", header.Get("Cross-Origin-Resource-Policy"), url)
		assert.Empty(t, header.Get("Access-Control-Allow-Origin"), url)
	}
}

// Browsers refuse a script of another type.
func TestFilesHaveTheirTypes(t *testing.T) {
	s := serve(t, nil)
	for path, kind := range map[string]string{
		"main.js": "text/javascript", "style.css": "text/css", "icon.svg": "image/svg+xml",
		"vendor/uplot/uPlot.iife.min.js": "text/javascript", "vendor/uplot/uPlot.min.css": "text/css",
	} {
		got := s.ask(http.MethodGet, s.base+path, "")
		assert.Equal(t, http.StatusOK, got.status, path)
		assert.Contains(t, got.header.Get("Content-Type"), kind, path)
	}
}

func TestViewIsOfWhatIsShown(t *testing.T) {
	s := serve(t, nil)
	first, second := tracing(), tracing()
	shown := func() radar.View {
		var view radar.View
		require.NoError(t, json.Unmarshal([]byte(s.ask(http.MethodGet, s.base+"view", "").body), &view))
		return view
	}
	end := s.Show(first)
	assert.Equal(t, radar.Running, shown().Tracing.Phase)
	assert.Equal(t, 1, shown().Now.Queues)
	look(second, 3)
	endSecond := s.Show(second)
	end()
	assert.Equal(t, 3, shown().Now.Queues, "the end of one does not take another one off")
	endSecond()
	endSecond()
	assert.Equal(t, radar.Absent, shown().Tracing.Phase)
}

// The first view of a stream is whole. Those that follow have what is new, and the
// next one is whole when a receiver comes.
func TestStreamFollowsTheState(t *testing.T) {
	s := serve(t, nil)
	lines := s.stream()
	assert.Equal(t, radar.Absent, next(t, lines).Tracing.Phase)
	state := tracing()
	end := s.Show(state)
	view := next(t, lines)
	for view.Tracing.Phase == radar.Absent {
		view = next(t, lines)
	}
	assert.Equal(t, "node-1", view.Node.Host)
	assert.NotEmpty(t, view.Heatmap.Edges)
	look(state, 5)
	for view.Now.Queues != 5 {
		view = next(t, lines)
	}
	assert.Empty(t, view.Heatmap.Edges)
	assert.Len(t, view.Heatmap.Columns, 1)
	end()
	for view.Tracing.Phase != radar.Absent {
		view = next(t, lines)
	}
}

// A receiver does more while somebody looks, and so must know when nobody does.
func TestStreamWatches(t *testing.T) {
	s := serve(t, nil)
	state := tracing()
	defer s.Show(state)()
	require.False(t, state.Watched())
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"events", nil)
	require.NoError(t, err)
	response, err := client().Do(request)
	require.NoError(t, err)
	_, err = bufio.NewReader(response.Body).ReadString('\n')
	require.NoError(t, err)
	assert.True(t, state.Watched())
	cancel()
	_ = response.Body.Close()
	assert.Eventually(t, func() bool { return !state.Watched() }, time.Minute, 10*time.Millisecond)
}

// A server's limit on writing a response would end each stream.
func TestStreamOutlastsTheWriteTimeout(t *testing.T) {
	s := serve(t, func(cfg *Config) { cfg.HTTP.WriteTimeout = 300 * time.Millisecond })
	lines := s.stream()
	for range 3 {
		next(t, lines)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	s := serve(t, nil)
	for range maxViewers {
		next(t, s.stream())
	}
	assert.Equal(t, http.StatusServiceUnavailable, s.ask(http.MethodGet, s.base+"events", "").status)
}

func TestViewsAreBounded(t *testing.T) {
	s := newSource(func() *radar.State { return nil }, nil)
	status := func() int {
		response := httptest.NewRecorder()
		s.serveView(response, httptest.NewRequest(http.MethodGet, "/view", nil))
		return response.Code
	}
	for range maxViewers {
		s.views <- struct{}{}
	}
	assert.Equal(t, http.StatusServiceUnavailable, status())
	<-s.views
	for range 2 {
		assert.Equal(t, http.StatusOK, status(), "each gives its place back")
	}
}

func TestShutdownEndsStreams(t *testing.T) {
	s := serve(t, nil)
	lines := s.stream()
	next(t, lines)
	began := time.Now()
	require.NoError(t, s.Shutdown(t.Context()))
	for lines.Scan() {
	}
	assert.Less(t, time.Since(began), 30*time.Second)
	require.NoError(t, s.Shutdown(t.Context()), "it may be called twice")
}

// statusHost remembers what is reported of the component.
type statusHost struct {
	component.Host
	events chan *componentstatus.Event
}

func (h statusHost) Report(event *componentstatus.Event) { h.events <- event }

// next is what is reported next.
func (h statusHost) next(t *testing.T) *componentstatus.Event {
	t.Helper()
	select {
	case event := <-h.events:
		return event
	case <-time.After(time.Minute):
		t.Fatal("nothing is reported")
		return nil
	}
}

// waiting starts a second extension where another listens, and returns what it reports
// and logs.
func waiting(t *testing.T, change func(*Config)) (*statusHost, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	settings := extensiontest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	cfg := createDefaultConfig().(*Config)
	change(cfg)
	second, err := NewFactory().Create(t.Context(), settings, cfg)
	require.NoError(t, err)
	host := &statusHost{componenttest.NewNopHost(), make(chan *componentstatus.Event, 10)}
	require.NoError(t, second.Start(t.Context(), host), "the collector goes on without the page")
	t.Cleanup(func() {
		require.NoError(t, second.Shutdown(context.WithoutCancel(t.Context())))
		assert.Empty(t, host.events, "the end is no error")
	})
	return host, logs
}

// Anybody may listen on the port. The page waits for it, and the collector does not. Whoever
// listened there may have been asked for the page, and so its token is another one then.
func TestPortThatIsTaken(t *testing.T) {
	s := serve(t, nil)
	address := strings.Trim(strings.TrimPrefix(s.origin(), "http://"), "/")
	host, logs := waiting(t, func(cfg *Config) {
		cfg.HTTP.NetAddr.Endpoint, cfg.Socket, cfg.Token = address, filepath.Join(t.TempDir(), "radar.sock"), testToken
	})
	event := host.next(t)
	assert.Equal(t, componentstatus.StatusRecoverableError, event.Status())
	require.ErrorContains(t, event.Err(), address)
	require.ErrorContains(t, event.Err(), "set endpoint to another port")
	assert.Equal(t, 1, logs.FilterMessageSnippet("is not served").Len())
	assert.Zero(t, logs.FilterFieldKey("url").Len(), "the URL would be another's")
	assert.Equal(t, 1, logs.FilterMessageSnippet("on a socket too").Len())
	require.NoError(t, s.Shutdown(t.Context()))
	assert.Equal(t, componentstatus.StatusOK, host.next(t).Status())
	require.Equal(t, 1, logs.FilterFieldKey("url").Len())
	url := logs.FilterFieldKey("url").All()[0].ContextMap()["url"].(string)
	assert.NotContains(t, url, testToken)
	for asked, status := range map[string]int{url: http.StatusOK, "http://" + address + "/" + testToken + "/": http.StatusForbidden} {
		response, err := client().Get(asked)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, status, response.StatusCode)
	}
}

// It may be over before the port is free.
func TestPortThatStaysTaken(t *testing.T) {
	s := serve(t, nil)
	host, _ := waiting(t, func(cfg *Config) {
		cfg.HTTP.NetAddr.Endpoint = strings.Trim(strings.TrimPrefix(s.origin(), "http://"), "/")
	})
	assert.Equal(t, componentstatus.StatusRecoverableError, host.next(t).Status())
}

// Who may read a file of the collector's user may ask without a port.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "radar.sock")
	s := serve(t, func(cfg *Config) {
		cfg.HTTP.NetAddr.Transport, cfg.HTTP.NetAddr.Endpoint = confignet.TransportTypeUnix, path
	})
	assert.Equal(t, "http://localhost/"+testToken+"/", s.base)
	overSocket := client()
	overSocket.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	response, err := overSocket.Get(s.base + "view")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	assert.Equal(t, http.StatusOK, response.StatusCode)
}

// A collector that was killed leaves its socket; one that runs keeps it.
func TestSocketThatIsLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "radar.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())
	onSocket := func(cfg *Config) {
		cfg.HTTP.NetAddr.Transport, cfg.HTTP.NetAddr.Endpoint = confignet.TransportTypeUnix, path
	}
	serve(t, onSocket)
	cfg := createDefaultConfig().(*Config)
	onSocket(cfg)
	second, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), cfg)
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(t.Context(), componenttest.NewNopHost()), "set endpoint to another path")
}

func TestCertificateThatIsMissing(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	files := map[string]any{"cert_file": "/no/such.pem", "key_file": "/no/such.key"}
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"endpoint": "localhost:0", "tls": files}).Unmarshal(cfg))
	created, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), cfg)
	require.NoError(t, err)
	err = created.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, "/no/such.pem")
	assert.NotContains(t, err.Error(), "another port")
}

// Each start has a token of its own, also after a reload: meanwhile somebody else may have
// listened on the port, and been told the old one.
func TestTokenIsRandom(t *testing.T) {
	token := func(factory extension.Factory) string {
		created, err := factory.Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), createDefaultConfig())
		require.NoError(t, err)
		return created.(*radarExtension).token
	}
	factory := NewFactory()
	first := token(factory)
	assert.True(t, isToken(first))
	assert.NotEqual(t, first, token(factory))
	assert.NotEqual(t, first, token(NewFactory()))
}

// Keys that nobody knows are refused, also of the server and of what is in it: with a
// misspelt "tls" the page would be there without.
func TestMisspeltKeys(t *testing.T) {
	for name, conf := range map[string]map[string]any{
		"allowed_host": {"allowed_host": []string{"node-1"}},
		"tsl":          {"tsl": map[string]any{"cert_file": "radar.pem"}},
		"cert_fil":     {"tls": map[string]any{"cert_fil": "radar.pem"}},
		"authentic":    {"auth": map[string]any{"authentic": "basicauth"}},
		"endpoin":      {"endpoin": "localhost:1"},
	} {
		err := confmap.NewFromStringMap(conf).Unmarshal(createDefaultConfig())
		assert.ErrorContains(t, err, name)
		assert.ErrorContains(t, err, "invalid keys")
	}
}

func TestConfig(t *testing.T) {
	for name, test := range map[string]struct {
		conf map[string]any
		says string
	}{
		"default":         {map[string]any{}, ""},
		"another port":    {map[string]any{"endpoint": "localhost:1"}, ""},
		"token":           {map[string]any{"token": "abcdefghijklmnop-_19"}, ""},
		"hosts":           {map[string]any{"allowed_hosts": []string{"node-1", "::2", "10.0.0.1"}}, ""},
		"no endpoint":     {map[string]any{"endpoint": ""}, "endpoint is empty: set it"},
		"no port":         {map[string]any{"endpoint": "localhost"}, `endpoint is "localhost": set it to a host and a port`},
		"with scheme":     {map[string]any{"endpoint": "http://localhost:1"}, "without scheme"},
		"large port":      {map[string]any{"endpoint": "localhost:99999"}, "a port up to 65535"},
		"beside":          {map[string]any{"socket": radar.Socket}, ""},
		"no path":         {map[string]any{"socket": "radar.sock"}, "set it to an absolute path of at most 107 bytes"},
		"long path":       {map[string]any{"socket": "/" + strings.Repeat("a", 107)}, "set it to an absolute path of at most 107 bytes"},
		"socket":          {map[string]any{"transport": "unix", "endpoint": "/run/radar.sock"}, ""},
		"no path of it":   {map[string]any{"transport": "unix"}, "with transport unix, set it to an absolute path"},
		"long path of it": {map[string]any{"transport": "unix", "endpoint": "/" + strings.Repeat("a", 107)}, "set it to an absolute path of at most 107 bytes"},
		"socket and TLS":  {map[string]any{"transport": "unix", "endpoint": "/run/radar.sock", "tls": map[string]any{"cert_file": "radar.pem"}}, "leave one of them out"},
		"no stream":       {map[string]any{"transport": "udp"}, `transport is "udp": set it to tcp`},
		"packets":         {map[string]any{"transport": "unixgram", "endpoint": "/run/radar.sock"}, "set it to tcp, tcp4, tcp6 or unix"},
		"short token":     {map[string]any{"token": "secret"}, "token is too short"},
		"slash":           {map[string]any{"token": "abcdefgh/ijklmnop"}, "token is too short or has other characters"},
		"host and port":   {map[string]any{"allowed_hosts": []string{"node-1:443"}}, `allowed_hosts has "node-1:443"`},
		"URL":             {map[string]any{"allowed_hosts": []string{"https://node-1"}}, "without scheme and port"},
		"any host":        {map[string]any{"allowed_hosts": []string{"*"}}, "allowed_hosts"},
	} {
		cfg := createDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(test.conf).Unmarshal(cfg), name)
		err := cfg.(*Config).Validate()
		if test.says == "" {
			assert.NoError(t, err, name)
			continue
		}
		assert.ErrorContains(t, err, test.says, name)
	}
	assert.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	assert.Equal(t, "localhost:55690", createDefaultConfig().(*Config).HTTP.NetAddr.Endpoint)
}

// refusing is an authenticator that lets nobody in.
type refusing struct{ component.Component }

func (refusing) Authenticate(context.Context, map[string][]string) (context.Context, error) {
	return nil, errors.New("who are you?")
}

// hostWith has extensions.
type hostWith map[component.ID]component.Component

func (h hostWith) GetExtensions() map[component.ID]component.Component { return h }

// The token is not all: whoever has it still meets the authenticator.
func TestAuthenticator(t *testing.T) {
	id := component.MustNewID("refusing")
	s := serveBeside(t, hostWith{id: refusing{}}, func(cfg *Config) {
		cfg.HTTP.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: id}})
	})
	got := s.ask(http.MethodGet, s.base+"view", "")
	assert.Equal(t, http.StatusUnauthorized, got.status)
	assert.NotContains(t, got.body, "tracing")
}

// Anybody may listen on the address of localhost that the page is not on. The URL must not
// lead there: it has the token.
func TestURLIsOfTheAddressThatIsListenedOn(t *testing.T) {
	s := serve(t, func(cfg *Config) { cfg.HTTP.NetAddr.Endpoint = "localhost:0" })
	page, err := url.Parse(s.base)
	require.NoError(t, err)
	assert.True(t, net.ParseIP(page.Hostname()).IsLoopback(), s.base)
	assert.Equal(t, http.StatusOK, s.ask(http.MethodGet, s.base, "").status)
}

func TestURLIsOneThatAPersonCanOpen(t *testing.T) {
	for endpoint, want := range map[string]string{
		"127.0.0.1:0": "http://127.0.0.1:", "[::]:0": "http://localhost:", "0.0.0.0:0": "http://localhost:", ":0": "http://localhost:",
	} {
		s := serve(t, func(cfg *Config) { cfg.HTTP.NetAddr.Endpoint = endpoint })
		assert.True(t, strings.HasPrefix(s.base, want), "%s: %s", endpoint, s.base)
		assert.Equal(t, http.StatusOK, s.ask(http.MethodGet, s.base, "").status, s.base)
	}
}
