package doctor

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/doctor/heldtest"
)

func TestMain(m *testing.M) {
	heldtest.Main()
	os.Exit(m.Run())
}

// sleeper is a process whose first thread sleeps in state D.
func sleeper(t *testing.T, sleeps string) (pid int) {
	t.Helper()
	process := heldtest.Command(sleeps)
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	return process.Process.Pid
}

func TestOneThatADriverHoldsIsHeld(t *testing.T) {
	t.Parallel()
	pid := sleeper(t, heldtest.Forever)
	require.Eventually(t, func() bool { return IsHeld(pid) }, 30*time.Second, time.Millisecond)
	began := time.Now()
	assert.True(t, IsHeld(pid))
	assert.GreaterOrEqual(t, time.Since(began), (heldLooks-1)*heldPause)
}

// A node without memory has its threads in state D most of the time, each time for a page.
func TestOneThatSleepsOftenIsNotHeld(t *testing.T) {
	t.Parallel()
	pid := sleeper(t, heldtest.Shortly)
	judged := 0
	for range 10 {
		before := asleep(t, pid)
		held := IsHeld(pid)
		// On a busy machine a short sleep may be a long one, which shows nothing.
		if asleep(t, pid) != before {
			judged++
			assert.False(t, held)
		}
	}
	assert.Positive(t, judged)
}

// asleep waits until the first thread is in state D, and tells in which of its sleeps.
func asleep(t *testing.T, pid int) (sleep string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for sleep == "" {
		require.True(t, time.Now().Before(deadline), "it is never in state D")
		time.Sleep(time.Millisecond)
		sleep = sleepsOf(tasksOf(pid))[strconv.Itoa(pid)]
	}
	return sleep
}

func TestOneThatWaitsIsNotHeld(t *testing.T) {
	t.Parallel()
	assert.False(t, IsHeld(os.Getpid()))
	assert.False(t, IsHeld(-1), "no such process")
}
