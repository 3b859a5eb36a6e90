package launch

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func startShell(t *testing.T, script string) *Child {
	t.Helper()
	runtime.LockOSThread()
	c, err := Start(t.Context(), filepath.Join(t.TempDir(), "log"), "/bin/sh", "-c", script)
	require.NoError(t, err)
	return c
}

func TestChildThatFailsSaysWhy(t *testing.T) {
	c := startShell(t, "echo no such device; exit 3")
	err := c.Wait()
	assert.ErrorContains(t, err, "exit status 3")
	assert.ErrorContains(t, err, "no such device")
	assert.True(t, c.Ended())
}

func TestChildsLogIsCleaned(t *testing.T) {
	err := startShell(t, `printf 'warn\tthread \033[2J\nlast\n'; exit 3`).Wait()
	assert.ErrorContains(t, err, "warn  thread \uFFFD[2J\nlast")
}

func TestChildThatEndsWell(t *testing.T) {
	assert.NoError(t, startShell(t, "exit 0").Wait())
}

func TestChildIsAskedToStop(t *testing.T) {
	c := startShell(t, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done")
	require.NoError(t, c.AwaitLine(t.Context(), "ready", 10*time.Second))
	c.Stop()
	assert.NoError(t, c.Wait())
}

func TestChildThatEndsBeforeItIsReady(t *testing.T) {
	c := startShell(t, "echo cannot start")
	assert.ErrorContains(t, c.AwaitLine(t.Context(), "ready", 10*time.Second), "cannot start")
	assert.NoError(t, c.Wait())
}

func TestChildThatIsNeverReady(t *testing.T) {
	c := startShell(t, "exec sleep 60")
	assert.ErrorContains(t, c.AwaitLine(t.Context(), "ready", 100*time.Millisecond), "not ready within")
	c.Stop()
	_ = c.Wait()
}
