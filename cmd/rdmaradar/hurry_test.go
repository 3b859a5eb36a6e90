package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mayHurry skips where nobody may raise a priority.
func mayHurry(t *testing.T) {
	t.Helper()
	other := exec.Command("sleep", "60")
	require.NoError(t, other.Start())
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	if err := unix.Setpriority(unix.PRIO_PROCESS, other.Process.Pid, highest); err != nil {
		t.Skipf("only who has CAP_SYS_NICE raises priorities: %v", err)
	}
}

// threadsThatWait are those of a process that do not have the highest priority. The system
// call, unlike the C library, returns 20 less the nice value.
func threadsThatWait(t *testing.T, pid int) (waiting []int) {
	t.Helper()
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	require.NoError(t, err)
	require.NotEmpty(t, threads)
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		require.NoError(t, err)
		if priority, err := unix.Getpriority(unix.PRIO_PROCESS, id); err == nil && priority != 20-highest {
			waiting = append(waiting, id)
		}
	}
	return waiting
}

// Who looks at the health of a node is asked for it by who waits, and a busy node is not to
// keep both waiting.
func TestNodeHealthHurries(t *testing.T) {
	mayHurry(t)
	path := filepath.Join(t.TempDir(), "radar.sock")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	looker := make(chan int, 1)
	seen, look := make(chan struct{}), make(chan struct{})
	server := &http.Server{
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(look)
			<-seen
		}),
		ConnContext: func(ctx context.Context, connection net.Conn) context.Context {
			looker <- peer(t, connection)
			return ctx
		},
	}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	cmd := command(t, "doctor", "--node-health", "--socket", path)
	require.NoError(t, cmd.Start())
	select {
	case <-look:
	case <-time.After(30 * time.Second):
		require.Fail(t, "nobody looks")
	}
	pid := <-looker
	assert.NotEqual(t, cmd.Process.Pid, pid, "who looks is a process of its own")
	assert.Empty(t, threadsThatWait(t, pid), "of who looks")
	assert.Empty(t, threadsThatWait(t, cmd.Process.Pid), "of who waits for it")
	close(seen)
	_ = cmd.Wait()
}

// peer is the process at the other end of a socket.
func peer(t *testing.T, connection net.Conn) int {
	t.Helper()
	raw, err := connection.(*net.UnixConn).SyscallConn()
	require.NoError(t, err)
	pid := 0
	require.NoError(t, raw.Control(func(fd uintptr) {
		if who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(who.Pid)
		}
	}))
	return pid
}
