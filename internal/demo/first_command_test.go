//go:build backends

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/launch"
	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/radarclient"
	"github.com/rdmaradar/rdmaradar/internal/testbed"
)

// The first command of the README, for fewer seconds: it ends well, which it does only
// when every spike was exported, and meanwhile a spike and its stages are on the page whose
// address it prints.
func TestFirstCommandOfTheReadme(t *testing.T) {
	testbed.RequireRoot(t)
	testbed.KeepThread(t)
	printed := filepath.Join(t.TempDir(), "printed")
	demo, err := launch.Start(t.Context(), printed, "make", "-C", testbed.File(t, "."), "demo", "DEMO_SECONDS=6")
	require.NoError(t, err)
	t.Cleanup(func() {
		demo.Stop()
		_ = demo.Wait()
	})

	address := awaitAddress(t, demo, printed)
	spike := awaitSpike(t, demo, address)
	t.Logf("on the page: %v in %v", time.Duration(spike.Duration), spike.Stages)
	require.NoError(t, demo.Wait())
	text, err := os.ReadFile(printed)
	require.NoError(t, err)
	assert.Regexp(t, `spikes seen +\d+, each on its device and queue pair`, string(text))
}

// awaitAddress is the address of the radar page, which is printed once the collector runs.
func awaitAddress(t *testing.T, demo *launch.Child, printed string) string {
	t.Helper()
	for deadline := time.Now().Add(testbed.Patience); time.Now().Before(deadline) && !demo.Ended(); time.Sleep(pollInterval) {
		text, err := os.ReadFile(printed)
		require.NoError(t, err)
		if address := pageAddress.Find(text); address != nil && bytes.Contains(text, slices.Concat(address, []byte("\n"))) {
			return string(address)
		}
	}
	demo.Stop()
	require.NoError(t, demo.Wait())
	text, _ := os.ReadFile(printed)
	require.Fail(t, "no address of the radar page was printed", string(text))
	return ""
}

// awaitSpike is a spike as the page has it.
func awaitSpike(t *testing.T, demo *launch.Child, address string) radar.Request {
	t.Helper()
	client, err := radarclient.AtURL(address)
	require.NoError(t, err)
	var view radar.View
	for ; !demo.Ended(); time.Sleep(pollInterval) {
		seen, err := client.View(t.Context())
		if err != nil {
			// It ends while it is asked.
			continue
		}
		view = seen
		if at := slices.IndexFunc(view.Slowest, isSpike); at >= 0 {
			return view.Slowest[at]
		}
	}
	last, _ := json.Marshal(view.Slowest)
	require.Fail(t, "the page never had a spike with its stages", "it ended with %v; the slowest on the page were %s", demo.Wait(), last)
	return radar.Request{}
}

// isSpike tells one from what the machine delayed, and the job from the process that goes
// before it, which sends nothing with immediate data.
func isSpike(r radar.Request) bool {
	return r.Queue.Device == deviceName && r.Process.Name == "verbsim" && r.Operation == "rdma_write_with_imm" &&
		slices.ContainsFunc(r.Stages, isLate)
}

// isLate reports whether a stage has what the device was late. It is "completion" where there
// was nothing to tell the device from the poll.
func isLate(s radar.Stage) bool {
	return (s.Name == "device" || s.Name == "completion") && time.Duration(s.Time) >= spikeMicroseconds*time.Microsecond
}
