//go:build backends

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/launch"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
	"github.com/rdmaradar/rdmaradar/internal/verbsim"
)

// job is a simulated workload on the device.
type job struct {
	t *testing.T
	*launch.Child
	directory string
}

// startJob runs a scenario with more variables in its environment.
func startJob(t *testing.T, root string, environment []string, scenario string, flags ...string) *job {
	t.Helper()
	j := &job{t: t, directory: t.TempDir()}
	arguments := append(slices.Clone(environment), testbed.Built(t, "verbsim", "verbsim"), scenario,
		"--device", device, "--sysroot", root, "--truth", j.truth(), "--truth-records", j.records())
	child, err := launch.Start(t.Context(), filepath.Join(j.directory, "log"), "env", append(arguments, flags...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		child.Stop()
		_ = child.Wait() // The test has asked for what it cares about.
	})
	j.Child = child
	return j
}

func (j *job) truth() string   { return filepath.Join(j.directory, "truth.json") }
func (j *job) records() string { return filepath.Join(j.directory, "records") }

// end waits for the job and returns what it did. Its own checks must hold.
func (j *job) end() verbsim.Truth {
	j.t.Helper()
	require.NoError(j.t, j.Wait())
	truth, err := verbsim.Read(j.truth())
	require.NoError(j.t, err)
	require.True(j.t, truth.OK)
	return truth
}

// thread returns the id of the thread of that name.
func (j *job) thread(name string) int {
	j.t.Helper()
	found := 0
	waitUntil(j.t, "the job has a thread "+name, func() bool {
		names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", j.PID))
		require.NoError(j.t, err)
		for _, path := range names {
			text, err := os.ReadFile(path)
			if err == nil && strings.TrimSpace(string(text)) == name {
				_, err := fmt.Sscan(filepath.Base(filepath.Dir(path)), &found)
				require.NoError(j.t, err)
			}
		}
		return found != 0
	})
	return found
}

// waitUntil fails the test with what was waited for.
func waitUntil(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testbed.Patience); !reached(); time.Sleep(50 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "not within %v: %s", testbed.Patience, what)
	}
}

func inDirectory(text, directory string) string { return strings.ReplaceAll(text, "{dir}", directory) }
