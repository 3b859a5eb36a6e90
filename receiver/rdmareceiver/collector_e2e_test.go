//go:build e2e

package rdmareceiver_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// endLimit bounds the end of the collector. Its own part takes seconds; the rest
// is the kernel, which waits for every CPU before it lets go of a probe.
const endLimit = time.Minute

// tracing is held by the test that traces workloads: its collector sees those of all.
var tracing sync.Mutex

// traces lets a test run beside those that trace no workload.
func traces(t *testing.T) {
	t.Helper()
	requireRoot(t)
	t.Parallel()
	tracing.Lock()
	t.Cleanup(tracing.Unlock)
}

// collector is the built collector, running.
type collector struct {
	t       *testing.T
	dir     string
	command *exec.Cmd
	log     syncBuffer
	exited  chan struct{}
	// status and metrics are the ports of its health check and of its own
	// metrics.
	status, metrics int
}

// syncBuffer is a buffer that a process writes while the test reads it.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func requireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: probes cannot be attached, and privileges not be dropped, without it")
	}
}

// startCollector runs the collector with a configuration in which {dir} stands
// for a directory of its own, and with the credentials of another user if attr
// is not nil.
func startCollector(t *testing.T, config string, attr *syscall.SysProcAttr) *collector {
	t.Helper()
	requireRoot(t)
	c := &collector{t: t, dir: testbed.Directory(t, 0o755), exited: make(chan struct{}), status: testbed.FreePort(t), metrics: testbed.FreePort(t)}
	binary := filepath.Join(c.dir, "otelcol-rdma")
	testbed.CopyProgram(t, testbed.Built(t, "otelcol-rdma", "build"), binary)
	arguments := []string{"--feature-gates=extension.healthcheck.useComponentStatus"}
	for name, text := range map[string]string{"config": strings.ReplaceAll(config, "{dir}", c.dir), "watch": c.watched(config)} {
		path := filepath.Join(c.dir, name+".yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		arguments = append(arguments, "--config", path)
	}

	ctx, cancel := context.WithCancel(context.Background())
	c.command = exec.CommandContext(ctx, binary, arguments...)
	c.command.Stdout, c.command.Stderr = &c.log, &c.log
	c.command.SysProcAttr = tied(attr)
	require.NoError(t, c.command.Start())
	go func() {
		// The exit code is asked for where it matters.
		_ = c.command.Wait()
		close(c.exited)
	}()
	t.Cleanup(func() {
		cancel()
		<-c.exited
		if t.Failed() {
			log := c.log.String()
			t.Logf("the end of the collector's log:\n%s", log[max(0, len(log)-8000):])
		}
	})
	return c
}

// tied has the kernel kill a process when that of the tests ends, however it does.
// The signal is tied to the thread that starts the process; the Go runtime keeps its
// threads.
func tied(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}

// watched is the part of a configuration that lets the test look inside. The radar is
// named here, if it has one: of two lists of extensions the collector takes one.
func (c *collector) watched(config string) string {
	extensions := "health_check"
	if strings.Contains(config, "rdma_radar:") {
		extensions += ", rdma_radar"
	}
	return fmt.Sprintf(`extensions:
  health_check:
    use_v2: true
    http: {endpoint: "localhost:%d", status: {enabled: true, path: /}, config: {enabled: false}}
    component_health: {include_permanent_errors: true, include_recoverable_errors: true, recovery_duration: 0s}
service:
  extensions: [%s]
  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: localhost, port: %d}}}}]
`, c.status, extensions, c.metrics)
}

// waitUntil fails the test with what was waited for and the time it had.
func (c *collector) waitUntil(what string, limit time.Duration, reached func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if reached() {
			return
		}
	}
	c.t.Fatalf("not within %v: %s", limit, what)
}

func (c *collector) waitForLog(text string, limit time.Duration) {
	c.t.Helper()
	c.waitUntil("the log says "+text, limit, func() bool { return strings.Contains(c.log.String(), text) })
}

// exitCode waits for the end.
func (c *collector) exitCode(limit time.Duration) int {
	c.t.Helper()
	select {
	case <-c.exited:
		return c.command.ProcessState.ExitCode()
	case <-time.After(limit):
		c.t.Fatalf("the collector did not end within %v", limit)
		return 0
	}
}

func (c *collector) running() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

func (c *collector) signal(signal os.Signal) {
	c.t.Helper()
	require.NoError(c.t, c.command.Process.Signal(signal))
}

// get returns a page of the collector, "" while there is none.
func (c *collector) get(port int, path string) string {
	response, err := http.Get(fmt.Sprintf("http://localhost:%d%s", port, path))
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(c.t, err)
	return string(body)
}

// own returns the sum of one of the collector's own metrics over the series
// whose labels contain the text.
func (c *collector) own(name, labels string) float64 {
	var sum float64
	for line := range strings.Lines(c.get(c.metrics, "/metrics")) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		metric, with, _ := strings.Cut(line[:max(at, 0)], "{")
		if metric != name || !strings.Contains(with, labels) {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		require.NoError(c.t, err, line)
		sum += value
	}
	return sum
}
