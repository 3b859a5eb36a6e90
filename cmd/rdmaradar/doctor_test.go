package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/doctor"
	"github.com/rdmaradar/rdmaradar/internal/doctor/heldtest"
	"github.com/rdmaradar/rdmaradar/internal/radar"
)

func TestDoctor(t *testing.T) {
	view := nodeView()
	view.Tracing = radar.Tracing{Phase: radar.Impaired, Reason: "needs CAP_SYS_ADMIN"}
	socket := collector(t, view)
	text, said, status := run(t, "doctor", "--socket", socket)
	assert.Equal(t, exitWarnings, status, said)
	assert.Contains(t, text, "the collector does not see everything: needs CAP_SYS_ADMIN")
	assert.Contains(t, text, "so that probes are not tried once more")
	assert.NotContains(t, text, "\x1b")

	text, _, status = run(t, "doctor", "--output", "json", "--socket", socket)
	assert.Equal(t, exitWarnings, status)
	var report struct {
		Worst    string
		Findings []struct{ Check, Level, What string }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &report))
	assert.Equal(t, "warning", report.Worst)
	checks := map[string]bool{}
	for _, f := range report.Findings {
		checks[f.Check] = true
	}
	for _, name := range []string{"kernel", "capabilities", "collector", "tracing", "libraries", "devices", "processes", "clock"} {
		assert.True(t, checks[name], name)
	}
}

func TestNodeHealth(t *testing.T) {
	text, said, _ := run(t, "doctor", "--node-health", "--socket", filepath.Join(t.TempDir(), "no.sock"))
	assert.Empty(t, said)
	assert.Equal(t, 1, strings.Count(text, "\n"), text)
	assert.Regexp(t, "^(not )?healthy: ", text)
	_, said, status := run(t, "doctor", "--node-health", "-o", "json")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, said, "leave --output out")
}

// No node has as many devices, and who looks is told how many it is to have.
func TestNodeHealthOfTooFewDevices(t *testing.T) {
	text, said, status := run(t, "doctor", "--node-health", "--devices", "100000", "--socket", filepath.Join(t.TempDir(), "no.sock"))
	assert.Equal(t, exitUnhealthy, status, said)
	assert.Regexp(t, "^not healthy: .*the kernel lists [0-9]+ RDMA devices? of 100000", text)
}

// Who looks may hang for ever, before or after its line.
func TestNodeHealthWaitsForNobody(t *testing.T) {
	const noLine = "who looks printed no line"
	for name, test := range map[string]struct {
		script string
		says   string
		status int
	}{
		"healthy":       {"echo healthy: 8 devices", "healthy: 8 devices\n", 0},
		"not healthy":   {"echo not healthy: mlx5_3", "not healthy: mlx5_3\n", exitUnhealthy},
		"hangs at end":  {"echo healthy; exec sleep 60", "healthy\n", 0},
		"starves":       {"exec sleep 60", "who looks did not end in time, and no thread of it is held in state D: the node may be too busy, look at its load", exitNotSeen},
		"saw nothing":   {"echo rdmaradar: no sysfs >&2; exit 1", "no sysfs", exitNotSeen},
		"crashes":       {"echo 'panic: nil map' >&2; exit 2", "panic: nil map", exitNotSeen},
		"says nothing":  {"exit 0", noLine, exitNotSeen},
		"half a line":   {"printf healthy", noLine, exitNotSeen},
		"no such thing": {"exec /no/such/program 2>/dev/null", noLine, exitNotSeen},
	} {
		look := exec.Command("sh", "-c", test.script)
		var out bytes.Buffer
		began := time.Now()
		err := nodeHealth(t.Context(), look, &out)
		assert.Less(t, time.Since(began), 30*time.Second, name)
		_ = look.Process.Kill()
		_ = look.Wait()
		if test.status == 0 {
			assert.NoError(t, err, name)
			assert.Equal(t, test.says, out.String(), name)
			continue
		}
		exit := (*exitError)(nil)
		require.ErrorAs(t, err, &exit, name)
		assert.Equal(t, test.status, exit.status, name)
		if test.status == exitNotSeen {
			assert.Empty(t, out.String(), name)
			assert.ErrorContains(t, err, "nothing was seen of this node: "+test.says, name)
			continue
		}
		assert.Equal(t, test.says, out.String(), name)
	}
}

// Who looks may be held by the kernel, as by a driver that does not answer. That is a
// fault of the node.
func TestNodeHealthOfADriverThatHangs(t *testing.T) {
	look := heldtest.Command(heldtest.Forever)
	var out bytes.Buffer
	began := time.Now()
	exit := (*exitError)(nil)
	require.ErrorAs(t, nodeHealth(t.Context(), look, &out), &exit)
	assert.Less(t, time.Since(began), 30*time.Second)
	_ = look.Wait()
	assert.Equal(t, exitUnhealthy, exit.status)
	assert.Equal(t, "not healthy: nothing was seen of this node: who looks did not end in time: a driver or a file system does not answer\n", out.String())
}

// A line that is there when the time is over, or comes while it is looked why there is
// none, is the answer.
func TestALineThatComesLateIsTaken(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	lines := make(chan string, 1)
	for range 100 {
		lines <- "healthy\n"
		_, err := awaited(ctx, lines, -1)
		require.NoError(t, err)
	}
	held := heldtest.Command(heldtest.Forever)
	require.NoError(t, held.Start())
	defer func() {
		_ = held.Process.Kill()
		_ = held.Wait()
	}()
	require.Eventually(t, func() bool { return doctor.IsHeld(held.Process.Pid) }, 30*time.Second, time.Millisecond)
	time.AfterFunc(50*time.Millisecond, func() { lines <- "healthy\n" })
	_, err := awaited(ctx, lines, held.Process.Pid)
	assert.NoError(t, err)
	_, err = awaited(ctx, lines, held.Process.Pid)
	assert.ErrorIs(t, err, errHeld)
}

// Who is told to end has not found a fault: a scheduler that loses patience must not take
// the node away for it.
func TestNodeHealthThatIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	look := exec.Command("sleep", "60")
	var out bytes.Buffer
	exit := (*exitError)(nil)
	require.ErrorAs(t, nodeHealth(ctx, look, &out), &exit)
	_ = look.Wait()
	assert.Equal(t, exitNotSeen, exit.status)
	require.ErrorContains(t, exit, "ended by a signal")
	assert.Empty(t, out.String())
}

func TestNodeHealthThatCannotBePrinted(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = full.Close() }()
	look := exec.Command("echo", "healthy")
	exit := (*exitError)(nil)
	require.ErrorAs(t, nodeHealth(t.Context(), look, full), &exit)
	_ = look.Wait()
	assert.Equal(t, exitNotSeen, exit.status)
}

func TestEnding(t *testing.T) {
	for level, want := range map[doctor.Level]int{doctor.OK: 0, doctor.Note: 0, doctor.Unknown: 1, doctor.Warning: 1, doctor.Problem: 2} {
		exit := (*exitError)(nil)
		if err := ending(level); want == 0 {
			assert.NoError(t, err)
		} else {
			require.ErrorAs(t, err, &exit)
			assert.Equal(t, want, exit.status)
		}
	}
}
