package verbsim

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSpikes: a spike takes at least its delay, and only the first queue has them.
func TestSpikes(t *testing.T) {
	got := run(t, "nccl", "--seconds", "1.5", "--warmup-quiet-ms", "500", "--spikes-per-second", "20")
	require.NotEmpty(t, got.truth.Spikes)
	quiet := got.truth.Start + uint64(500*time.Millisecond)
	for _, s := range got.truth.Spikes {
		assert.EqualValues(t, 450*time.Microsecond, s.Delay)
		assert.Greater(t, s.Posted, quiet)
		assert.GreaterOrEqual(t, s.Due-s.Posted, s.Delay)
		assert.Equal(t, got.truth.Spikes[0].QPNumber, s.QPNumber)
		assert.EqualValues(t, 4, s.Requests)
	}
}

// TestSlowShare: the programmed share of the requests is late, all on the last
// queue, and no other request has to wait for them.
func TestSlowShare(t *testing.T) {
	got := run(t, "rate", "--requests", "20000", "--rate", "50000", "--slow-share", "0.1", "--spike-us", "300")
	last := uint32(0)
	for i := range got.records {
		last = max(last, got.records[i].QPNumber)
	}
	slow := 0
	for i := range got.records {
		r := &got.records[i]
		if r.QPNumber != last {
			require.Less(t, int64(r.Due-r.PostAfter), int64(300*time.Microsecond), "record %d", i)
			continue
		}
		slow++
		require.GreaterOrEqual(t, r.Due-r.PostBefore, uint64(300*time.Microsecond), "record %d", i)
	}
	assert.InDelta(t, 2000, slow, 1)
}

// TestSaturated: the port moves no more than its rate, and the queue in front
// of it explains the time of every request. What the machine adds by not
// running the poller is not in Due.
func TestSaturated(t *testing.T) {
	got := run(t, "nccl-saturated", "--seconds", "1")
	require.Len(t, got.truth.Devices, 1)
	rate := float64(got.truth.Devices[0].Rate) / 8e9 // bytes a nanosecond
	slices.SortFunc(got.records, func(a, b Record) int { return int(int64(a.Due - b.Due)) })
	var bytes uint64
	for i := range got.records {
		bytes += got.records[i].Bytes
		span := float64(got.records[i].Due - got.truth.Start)
		require.LessOrEqual(t, float64(bytes), rate*span*1.0001, "record %d", i)
	}
	assert.Greater(t, got.truth.SlowTotal, got.truth.Counts.Completions*9/10)
}

// TestLatePoller: the device was done in time.
func TestLatePoller(t *testing.T) {
	got := run(t, "late-poller", "--seconds", "1", "--rate", "500")
	late := 0
	for _, s := range got.truth.Slow {
		assert.Less(t, s.Due-s.Posted, uint64(20*time.Millisecond))
		if s.Delivered-s.Due >= uint64(450*time.Microsecond) {
			late++
		}
	}
	assert.Greater(t, late, 10)
}

// TestReadyAndWait: nothing is posted before the file that is waited for.
func TestReadyAndWait(t *testing.T) {
	dir := t.TempDir()
	ready, wait, truth := filepath.Join(dir, "ready"), filepath.Join(dir, "wait"), filepath.Join(dir, "truth")
	cmd, stdout := start(t, "nccl", "--seconds", "0.2", "--ready-file", ready, "--wait-file", wait, "--truth", truth)
	waitFor(t, ready)
	time.Sleep(50 * time.Millisecond)
	before := monotonic(t)
	require.NoError(t, os.WriteFile(wait, nil, 0o600))
	require.NoError(t, cmd.Wait(), stdout.String())
	assert.GreaterOrEqual(t, readTruth(t, truth).Start, before)
}

// TestTerm: SIGTERM ends a run in order, with its truth.
func TestTerm(t *testing.T) {
	dir := t.TempDir()
	ready, truth := filepath.Join(dir, "ready"), filepath.Join(dir, "truth")
	cmd, stdout := start(t, "nccl", "--seconds", "0", "--midstream", "--ready-file", ready, "--truth", truth)
	waitFor(t, ready)
	require.NoError(t, cmd.Cancel())
	require.NoError(t, cmd.Wait(), stdout.String())
	assert.True(t, readTruth(t, truth).OK)
}

// TestPause: the pauses are there, and nothing is outstanding in them.
func TestPause(t *testing.T) {
	got := run(t, "perftest", "--requests", "2000", "--pause-after", "500", "--pause-ms", "60")
	posts := make([]uint64, 0, len(got.records))
	for _, r := range got.records {
		posts = append(posts, r.PostBefore)
	}
	slices.Sort(posts)
	gaps := 0
	for i := 1; i < len(posts); i++ {
		if posts[i]-posts[i-1] > uint64(60*time.Millisecond) {
			gaps++
		}
	}
	assert.GreaterOrEqual(t, gaps, 2)
}

// TestPauseAt: one pause, when it was asked for.
func TestPauseAt(t *testing.T) {
	got := run(t, "varied", "--seconds", "0.5", "--pause-at-ms", "200", "--pause-ms", "150")
	at, during := got.truth.Start+uint64(200*time.Millisecond), 0
	for i := range got.records {
		posted := got.records[i].PostBefore
		// A turn that was late began its post before.
		if posted > at+uint64(100*time.Millisecond) && posted < at+uint64(150*time.Millisecond) {
			during++
		}
	}
	assert.Zero(t, during)
	assert.Greater(t, got.records[len(got.records)-1].PostBefore, at)
}

// TestNap: the thread sleeps between polls, and not in the quiet time.
func TestNap(t *testing.T) {
	got := run(t, "perftest-lat", "--requests", "60", "--warmup-quiet-ms", "1", "--latency-us", "100", "--nap-us", "3000")
	late := 0
	for _, s := range got.truth.Slow {
		if s.Delivered-s.Posted >= uint64(3*time.Millisecond) {
			late++
			assert.Less(t, s.Due, s.Delivered)
		}
	}
	assert.Greater(t, late, 30)
}

// TestVaried: sizes and depths change.
func TestVaried(t *testing.T) {
	got := run(t, "varied", "--seconds", "1.5")
	sizes := map[uint64]bool{}
	for i := range got.records {
		sizes[got.records[i].Bytes] = true
	}
	assert.Len(t, sizes, 5)
}

// TestRoundOfIDs: wr_ids rise and begin again, each as often as the others.
func TestRoundOfIDs(t *testing.T) {
	got := run(t, "rate", "--requests", "400", "--qps", "1", "--wr-ids", "40")
	times := map[uint64]int{}
	for _, r := range got.records {
		times[r.WRID]++
	}
	require.Len(t, times, 40)
	for id, n := range times {
		assert.Less(t, id, uint64(40))
		assert.InDelta(t, len(got.records)/40, n, 1)
	}
}

// TestEvictPost: what is out of memory comes back as it was, in every flow and
// with chains longer than a page.
func TestEvictPost(t *testing.T) {
	for _, scenario := range []string{"rate", "churn", "deep-chain"} {
		checkRun(t, scenario, run(t, scenario, "--seconds", "0.3", "--evict-post", "2"))
		checkRun(t, scenario, run(t, scenario, "--seconds", "0.3", "--evict-post", "2", "--evict-apart"))
	}
}

// TestRefuseEvery: refused calls of ibv_modify_qp change nothing, also with work
// outstanding.
func TestRefuseEvery(t *testing.T) {
	for _, scenario := range []string{"rate", "churn", "nccl"} {
		checkRun(t, scenario, run(t, scenario, "--seconds", "0.3", "--refuse-every", "3"))
	}
}

// TestGather: one poll finds as many completions as asked for, and no other one
// as many; too many are refused.
func TestGather(t *testing.T) {
	got := run(t, "rate", "--requests", "20000", "--qps", "1", "--depth", "512", "--gather", "400", "--gather-after", "5000")
	checkRecords(t, got)
	assert.Equal(t, 400, largestBatch(got.records))
	// Nothing but a poll that waits leaves so many outstanding, and all are done before it.
	for i := range got.records {
		require.NotZero(t, got.records[i].Due, "record %d", i)
	}
	out, err := exec.Command(filepath.Join(binDir(t), "verbsim"), "rate", "--seconds", "0.2", "--depth", "16", "--gather", "400").Output()
	require.Error(t, err)
	assert.Contains(t, string(out), "never outstanding")
}

// TestForkExec: both halves have one pid, and each its own truth.
func TestForkExec(t *testing.T) {
	dir := t.TempDir()
	truth := filepath.Join(dir, "truth")
	cmd, stdout := start(t, "fork-exec", "--seconds", "0.6", "--truth", truth, "--truth-records", truth+".bin")
	require.NoError(t, cmd.Wait(), stdout.String())
	first, second := readTruth(t, truth+".before-exec"), readTruth(t, truth)
	assert.Equal(t, first.PID, second.PID)
	assert.Less(t, first.End, second.Start)
	assert.EqualValues(t, 6, first.Counts.Outstanding, "three chains of two are left behind")
	assert.Zero(t, first.Counts.Unexplained())
	assert.Len(t, readRecords(t, truth+".bin.before-exec"), int(first.Counts.Delivered))
}

// TestOperations: every operation, with the payload on the right side.
func TestOperations(t *testing.T) {
	for op, want := range map[string]struct {
		code     uint16
		inbound  bool
		oneBytes uint64
	}{
		"write": {0, false, 4096}, "write-imm": {1, false, 4096}, "send": {2, false, 4096},
		"send-imm": {3, false, 4096}, "read": {4, true, 4096}, "swap": {5, true, 8}, "add": {6, true, 8},
	} {
		t.Run(op, func(t *testing.T) {
			got := run(t, "perftest-lat", "--requests", "100", "--size", "4096", "--op", op)
			for _, r := range got.records {
				assert.Equal(t, want.code, r.Operation)
				assert.Equal(t, want.oneBytes, r.Bytes)
			}
			n := got.truth.Counts
			assert.Equal(t, want.inbound, n.ReadBytes == n.Completions*want.oneBytes)
			assert.Equal(t, !want.inbound, n.SendBytes == n.Completions*want.oneBytes)
		})
	}
}

func TestSysroot(t *testing.T) {
	root := t.TempDir()
	run(t, "two-devices", "--requests", "100", "--rate-gbps", "200", "--sysroot", root)
	for _, device := range []string{"sim0", "sim1"} {
		port := filepath.Join(root, "sys/class/infiniband", device, "ports/1")
		for name, want := range map[string]string{
			"rate": "200 Gb/sec (4X HDR)", "state": "4: ACTIVE", "link_layer": "InfiniBand",
		} {
			got, err := os.ReadFile(filepath.Join(port, name))
			require.NoError(t, err)
			assert.Equal(t, want, strings.TrimSpace(string(got)))
		}
	}
}

// TestRefusals: wrong flags are named and cost exit code 2.
func TestRefusals(t *testing.T) {
	for _, test := range []struct{ want, args string }{
		{"nonsense", "nonsense"},
		{"not a number", "nccl --seconds soon"},
		{"out of range", "nccl --qps 0"},
		{"not a whole number", "nccl --qps 1.5"},
		{"letters, digits", "nccl --device ../../etc"},
		{"unrecognized option", "nccl --no-such-flag"},
	} {
		cmd := exec.Command(filepath.Join(binDir(t), "verbsim"), strings.Fields(test.args)...)
		out, err := cmd.CombinedOutput()
		require.Error(t, err, test.args)
		assert.Equal(t, 2, cmd.ProcessState.ExitCode(), test.args)
		assert.Contains(t, string(out), test.want)
	}
}

// TestOtherLayout: a provider compiled with another table than the loaded
// libibverbs reads must refuse, and say so. The table gets one slot too many.
func TestOtherLayout(t *testing.T) {
	bin := binDir(t)
	src := t.TempDir()
	require.NoError(t, os.CopyFS(src, os.DirFS(".")))
	header := filepath.Join(src, "provider/abi.h")
	text, err := os.ReadFile(header)
	require.NoError(t, err)
	slot := regexp.MustCompile(`(?m)^\tsim_unused_op modify_wq;$`)
	require.True(t, slot.Match(text))
	text = slot.ReplaceAll(text, []byte("\tsim_unused_op modify_wq;\n\tsim_unused_op added_later;"))
	require.NoError(t, os.WriteFile(header, text, 0o600))
	other := filepath.Join(src, "bin")
	require.NoError(t, makeIn(src, other))

	cmd := exec.Command(filepath.Join(bin, "verbsim"), "nccl", "--seconds", "0.1",
		"--provider", filepath.Join(other, "libverbsim-rdmav34.so"))
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "verbs_context_ops")
}

// TestNoSymbols: the provider is stripped and exports its control entry only,
// as a shipped one does.
func TestNoSymbols(t *testing.T) {
	for _, name := range []string{"libverbsim-rdmav34.so", "libverbsim-rdmav34-nocet.so"} {
		checkSymbols(t, filepath.Join(binDir(t), name))
	}
}

func start(t *testing.T, scenario string, flags ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	t.Cleanup(cancel)
	cmd := Command(ctx, filepath.Join(binDir(t), "verbsim"), scenario, flags...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	return cmd, &out
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, 20*time.Second, 2*time.Millisecond, path)
}
