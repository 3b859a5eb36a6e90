//go:build browser && screenshots

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/launch"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

const (
	// well is for how long nothing is wrong with a job, so that the heat map has what is usual,
	// ill for how long something has been when the page is looked at.
	well = 10 * time.Second
	ill  = 8 * time.Second
)

// Where a program is busy on the CPU of a job's thread, that is the cause, and who it is is
// said. It makes a picture of the documents, and is no part of make test: now and then the
// kernel lets the program do too little. That the cause is named is what make verdicts scores.
func TestCauseOfASimulatedJobIsSeen(t *testing.T) {
	testbed.RequireRoot(t)
	testbed.KeepThread(t)
	root := testbed.Node(t)
	// By the cgroups it is known that no quota is the cause.
	require.NoError(t, os.Mkdir(filepath.Join(root, "sys/fs"), 0o755))
	require.NoError(t, os.Symlink("/sys/fs/cgroup", filepath.Join(root, "sys/fs/cgroup")))
	o := openTab(t, 1440, 900)
	o.prefer("dark")
	o.open(startCollector(t, root, "propagate"))

	startSteadyJob(t, root)
	o.waitFor(`document.querySelectorAll('#queues-table tbody tr[aria-rowindex]').length > 0`)
	time.Sleep(well)
	startProgram(t, "busy", "nice", "-n", "-20", "taskset", "-c", "0", "sh", "-c", "while :; do :; done")
	began := time.Now()
	const named = `(also) => [...document.querySelectorAll('.incident')].some((e) => ['poller preempted', 'ran on its CPU instead', also].every((w) => e.innerText.includes(w)))`
	o.waitFor(`(` + named + `)('')`)
	// Where others on this machine do the same they may have done more of it, and are named.
	for time.Since(began) < patience/2 && !eval[bool](o, `(`+named+`)('sh (thread')`) {
		time.Sleep(time.Second)
	}
	time.Sleep(time.Until(began.Add(ill)))
	o.shootWindow("window-collector")
	assert.Regexp(t, device+` \(verbsim, pid \d+\)`, o.text(".incident h3"))
}

// startSteadyJob runs a simulated job, whose device is never late, on the first CPU.
func startSteadyJob(t *testing.T, root string) {
	t.Helper()
	provider, program := testbed.Built(t, "libverbsim-rdmav34.so", "verbsim"), testbed.Built(t, "verbsim", "verbsim")
	common := []string{"--device", device, "--sysroot", root, "--provider", provider}
	// A library is probed when a program first uses it, which goes before the job.
	first := startProgram(t, "first", "nice", append([]string{"-n", "-15", program, "perftest-lat", "--seconds", "1.5"}, common...)...)
	require.NoError(t, first.Wait())
	startProgram(t, "job", "nice", append([]string{
		"-n", "-15", "taskset", "-c", "0", program, "nccl", "--seconds", fmt.Sprint((well + patience).Seconds()), "--start-delay-ms", "500",
		"--spikes-per-second", "0", "--latency-us", "100",
	}, common...)...)
}

// startProgram runs a program until the end of the test.
func startProgram(t *testing.T, name, program string, arguments ...string) *launch.Child {
	t.Helper()
	child, err := launch.Start(t.Context(), filepath.Join(t.TempDir(), name+".log"), program, arguments...)
	require.NoError(t, err)
	t.Cleanup(func() {
		child.Stop()
		_ = child.Wait()
	})
	return child
}
