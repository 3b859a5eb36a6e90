package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/doctor/heldtest"
	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// asCommand has the test binary be the command.
const asCommand = "RDMARADAR_AS_COMMAND"

func TestMain(m *testing.M) {
	heldtest.Main()
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// command is the command with these arguments.
func command(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], arguments...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "TERM=xterm-256color")
	return cmd
}

// run returns what the command prints and its exit status.
func run(t *testing.T, arguments ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := command(t, arguments...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// hostileName would set the title of a terminal, clear it and move the cursor.
const hostileName = "evil\x1b]0;owned\x07\x1b[2J\x9b5A"

// nodeView is a node on which a queue of a hostile process is slow.
func nodeView() radar.View {
	now := time.Now().UnixMilli()
	return radar.View{
		At: now, Node: radar.Node{Host: "node-7"}, Tracing: radar.Tracing{Phase: radar.Running}, Now: radar.Pace{Queues: 1},
		Queues: radar.QueueTable{
			Processes: []radar.Process{{PID: 4242, Name: hostileName}}, Devices: []string{"mlx5_3"}, Process: []int{0}, Device: []int{0},
			Peer: []int{-1}, QP: []uint32{0x18f2}, State: []string{"synced"}, Type: []string{"RC"},
			Troubles: map[int]radar.Trouble{0: {Since: now, Last: now, Lost: 1e6, Cause: "poller_preempted"}},
		},
		Incidents: []radar.Incident{{Open: true, Subject: "QP 0x18f2 on mlx5_3", Happened: "up to 5.3 ms", Title: "poller preempted", Cause: "poller_preempted", First: now}},
	}
}

// collector serves a view on a socket as the extension does, and returns its path.
func collector(t *testing.T, view radar.View) string {
	t.Helper()
	body, err := json.Marshal(view)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "radar.sock")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	pages := http.NewServeMux()
	pages.HandleFunc("/view", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	pages.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("data: " + string(body) + "\n\n"))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(200 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	})
	server := &http.Server{Handler: pages}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return path
}

func TestTopOnce(t *testing.T) {
	socket := collector(t, nodeView())
	table, said, status := run(t, "top", "--once", "--socket", socket)
	assert.Zero(t, status, said)
	assert.Contains(t, table, "QP 0x18f2 on mlx5_3: up to 5.3 ms")
	assert.Contains(t, table, "Cause: poller preempted.")
	assert.Contains(t, table, "4242 evil\uFFFD]0;owned")
	assert.NotContains(t, table, "\x1b")

	text, _, status := run(t, "top", "--once", "--output", "json", "--socket", socket)
	assert.Zero(t, status)
	var document struct{ Queues []struct{ QP uint32 } }
	require.NoError(t, json.Unmarshal([]byte(text), &document))
	assert.Equal(t, uint32(0x18f2), document.Queues[0].QP)
}

// Scripts see in the exit status, and people in the text, that nothing is traced.
func TestTopOnceThatSeesNothing(t *testing.T) {
	socket := collector(t, radar.View{Tracing: radar.Tracing{Phase: radar.Failed, Reason: "needs CAP_BPF and CAP_PERFMON"}})
	text, said, status := run(t, "top", "--once", "--output", "json", "--socket", socket)
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, said, "rdmaradar: Nothing is traced on this node: needs CAP_BPF and CAP_PERFMON")
	assert.Contains(t, text, `"phase": "failed"`)
	text, said, status = run(t, "top", "--once", "--socket", socket)
	assert.Equal(t, exitFailed, status)
	assert.Equal(t, "rdmaradar: Nothing is traced on this node: needs CAP_BPF and CAP_PERFMON\n", said)
	assert.Empty(t, text, "people read it once")
}

// The health check of a collector, on a port beside that of its page, is no radar.
func TestWhoIsNoRadar(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"Server available"}`))
	}))
	defer server.Close()
	text, said, status := run(t, "top", "--once", "--url", server.URL)
	assert.Equal(t, exitFailed, status)
	assert.Empty(t, text)
	assert.Contains(t, said, "is no view of a radar")
	text, _, status = run(t, "doctor", "--url", server.URL)
	assert.NotZero(t, status)
	assert.Contains(t, text, "warning  collector")
	text, _, _ = run(t, "doctor", "--node-health", "--url", server.URL)
	assert.NotContains(t, text, "traced")
}

func TestTopWithoutCollector(t *testing.T) {
	_, said, status := run(t, "top", "--once", "--socket", filepath.Join(t.TempDir(), "no.sock"))
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, said, "Start otelcol-rdma with the extension rdma_radar")
}

// It says so as the collector does; what it says is a test of what was built.
func TestVersion(t *testing.T) {
	text, said, status := run(t, "--version")
	assert.Zero(t, status, said)
	assert.Equal(t, "rdmaradar version devel\n", text)
}

// Who may not use the socket, or enter its directory, is told which group may.
func TestTopWithoutAccess(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root runs commands as somebody else")
	}
	const group = 4_242_424
	socket := collector(t, nodeView())
	directory := filepath.Dir(socket)
	require.NoError(t, os.Chmod(filepath.Dir(directory), 0o755))
	require.NoError(t, os.Chmod(socket, 0o660))
	require.NoError(t, os.Chown(socket, -1, group))
	require.NoError(t, os.Chown(directory, -1, group))
	for mode, says := range map[os.FileMode]string{
		0o755: "permission denied: be root or in the group 4242424, that of the socket",
		0o750: "permission denied: be root or in the group 4242424, that of the directory " + directory + ",",
	} {
		require.NoError(t, os.Chmod(directory, mode))
		cmd := command(t, "top", "--once", "--socket", socket)
		// Nobody may enter the directory of the test binary.
		cmd.Path = "/proc/self/exe"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		said, err := cmd.CombinedOutput()
		exit := (*exec.ExitError)(nil)
		require.ErrorAs(t, err, &exit, "%s", said)
		assert.Equal(t, exitFailed, exit.ExitCode())
		assert.Contains(t, string(said), says)
	}
}

func TestUsage(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		says      string
	}{
		"no terminal":   {[]string{"top"}, "use --once"},
		"flag":          {[]string{"top", "--colour"}, "unknown flag: --colour"},
		"argument":      {[]string{"top", "node-7"}, `unknown argument "node-7"`},
		"command":       {[]string{"bottom"}, `unknown command "bottom"`},
		"output":        {[]string{"top", "--once", "-o", "xml"}, "set it to table or json"},
		"json live":     {[]string{"top", "-o", "json"}, "goes with --once"},
		"delay":         {[]string{"top", "-d", "0.1"}, "set it to seconds from 1"},
		"delay no time": {[]string{"top", "-d", "NaN"}, "set it to seconds from 1"},
		"iterations":    {[]string{"top", "-n", "-1"}, "set it to 0 or more"},
		"sort":          {[]string{"top", "--sort", "colour"}, `no order "colour"`},
		"url":           {[]string{"top", "--once", "--url", "localhost"}, "is not the address of a radar page"},
		"empty socket":  {[]string{"top", "--once", "--socket", ""}, "--socket is empty"},
		"no socket":     {[]string{"doctor", "--node-health", "--socket", ""}, "--socket is empty"},
		"devices":       {[]string{"doctor", "--node-health", "--devices", "-1"}, "set it to 0 or more"},
		"no health":     {[]string{"doctor", "--devices", "8"}, "goes with --node-health"},
		"both":          {[]string{"top", "--url", "http://a/", "--socket", "/b"}, "[socket url]"},
	} {
		_, said, status := run(t, test.arguments...)
		assert.Equal(t, exitUsage, status, name)
		assert.Contains(t, said, test.says, name)
	}
}

// until reads from a terminal until it has shown a text.
func until(t *testing.T, terminal *os.File, text string) string {
	t.Helper()
	var seen strings.Builder
	require.NoError(t, terminal.SetReadDeadline(time.Now().Add(30*time.Second)))
	buffer := make([]byte, 64<<10)
	for !strings.Contains(seen.String(), text) {
		n, err := terminal.Read(buffer)
		seen.Write(buffer[:n])
		require.NoError(t, err, "waiting for %q, seen %q", text, seen.String())
	}
	return seen.String()
}

// On a real terminal: it shows the queue, takes keys, gives the terminal back, and lets
// nothing through that a process put into its name.
func TestTopOnTerminal(t *testing.T) {
	cmd := command(t, "top", "--socket", collector(t, nodeView()))
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 120})
	require.NoError(t, err)
	defer func() { _ = terminal.Close() }()
	shown := until(t, terminal, "0x18f2 ")
	assert.Contains(t, shown, "poller preempted")
	_, err = terminal.WriteString("h")
	require.NoError(t, err)
	shown += until(t, terminal, "turn the order round")
	_, err = terminal.WriteString("xq")
	require.NoError(t, err)
	shown += until(t, terminal, "\x1b[?1049l")
	assert.NotContains(t, shown, "\x1b]0;owned")
	assert.NotContains(t, shown, "\x9b5A")
	assert.NoError(t, cmd.Wait())
}
