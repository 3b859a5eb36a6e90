package verbsim

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	runTimeout   = 60 * time.Second
	buildTimeout = 5 * time.Minute
)

// need skips aloud where the workload cannot be built.
func need(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"gcc", "make", "strip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the workload cannot be built: %v", err)
		}
	}
	if _, err := os.Stat("/usr/include/infiniband/verbs.h"); err != nil {
		t.Skip("the workload cannot be built: no infiniband/verbs.h; install libibverbs-dev")
	}
}

// binaries is where the workload of this run is built, once and when needed.
var binaries string

var build = sync.OnceValue(func() error { return makeIn(".", binaries) })

func makeIn(dir, bin string) error {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "make", "-C", dir, "BIN="+bin).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make -C %s: %w\n%s", dir, err, out)
	}
	return nil
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "verbsim")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaries = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func binDir(t *testing.T) string {
	t.Helper()
	need(t)
	require.NoError(t, build())
	return binaries
}

// result is all that a run leaves behind.
type result struct {
	summary Summary
	truth   Truth
	records []Record
}

func run(t *testing.T, scenario string, flags ...string) result {
	t.Helper()
	bin, dir := binDir(t), t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	defer cancel()
	truth, records := filepath.Join(dir, "truth.json"), filepath.Join(dir, "truth.bin")
	flags = append([]string{"--truth", truth, "--truth-records", records}, flags...)
	cmd := Command(ctx, filepath.Join(bin, "verbsim"), scenario, flags...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	require.NoError(t, err, "%s\n%s", stdout.String(), stderr.String())
	return result{readSummary(t, stdout.Bytes()), readTruth(t, truth), readRecords(t, records)}
}

func readSummary(t *testing.T, b []byte) Summary {
	t.Helper()
	s, err := ParseSummary(b)
	require.NoError(t, err)
	return s
}

func readTruth(t *testing.T, path string) Truth {
	t.Helper()
	truth, err := Read(path)
	require.NoError(t, err)
	return truth
}

func readRecords(t *testing.T, path string) []Record {
	t.Helper()
	records, err := ReadRecordsFile(path)
	require.NoError(t, err)
	return records
}

func TestScenarioNames(t *testing.T) {
	out, err := exec.Command(filepath.Join(binDir(t), "verbsim"), "--help").Output()
	require.NoError(t, err)
	var names []string
	inside := false
	for line := range strings.Lines(string(out)) {
		switch fields := strings.Fields(line); {
		case len(fields) == 0:
		case !strings.HasPrefix(line, " "):
			inside = strings.HasPrefix(line, "scenarios:")
		case inside:
			names = append(names, fields[0])
		}
	}
	assert.Equal(t, Scenarios(), names)
}

// TestScenarios runs every scenario with both providers, and holds summary,
// truth and records against each other.
func TestScenarios(t *testing.T) {
	for _, scenario := range Scenarios() {
		t.Run(scenario, func(t *testing.T) { checkRun(t, scenario, run(t, scenario, "--seconds", "0.3")) })
		t.Run(scenario+" nocet", func(t *testing.T) {
			provider := filepath.Join(binDir(t), "libverbsim-rdmav34-nocet.so")
			checkRun(t, scenario, run(t, scenario, "--requests", "1000", "--seconds", "0.2", "--provider", provider))
		})
	}
}

func checkRun(t *testing.T, scenario string, got result) {
	t.Helper()
	checkSummary(t, scenario, got)
	checkQueues(t, got.truth)
	checkRecords(t, got)
	checkSpecial(t, scenario, got)
}

func checkSummary(t *testing.T, scenario string, got result) {
	t.Helper()
	s, n := got.summary, got.truth.Counts
	assert.True(t, s.OK && got.truth.OK, s.Failure)
	assert.Equal(t, scenario, s.Scenario)
	assert.Equal(t, got.truth.PID, s.PID)
	assert.NotZero(t, n.Completions)
	assert.Equal(t, n.Posted, s.Requests)
	assert.Equal(t, n.Completions, s.Completions)
	assert.Equal(t, n.Delivered, n.Completions+n.RecvCompletions)
	assert.Zero(t, n.Unexplained(), "%+v", n)
	assert.Zero(t, n.RecvUnexplained(), "%+v", n)
	assert.Greater(t, got.truth.End, got.truth.Start)
}

func checkQueues(t *testing.T, truth Truth) {
	t.Helper()
	var posted, delivered uint64
	for _, q := range truth.Queues {
		assert.Zero(t, q.Counts.Unexplained(), "%+v", q)
		assert.LessOrEqual(t, q.QPNumber, uint32(0xffffff))
		assert.NotZero(t, q.Context)
		posted += q.Counts.Posted
		delivered += q.Counts.Completions + q.Counts.RecvCompletions
	}
	assert.Equal(t, truth.Counts.Posted, posted)
	assert.Equal(t, truth.Counts.Delivered, delivered)
}

func checkRecords(t *testing.T, got result) {
	t.Helper()
	n := got.truth.Counts
	var sends, recvs, requests, slow uint64
	for i := range got.records {
		r := &got.records[i]
		if r.Recv() {
			recvs++
		} else {
			sends++
			requests += uint64(r.Requests)
			if r.PollAfter-r.PostBefore > got.truth.Threshold {
				slow++
			}
		}
		ordered := r.PostBefore <= r.PostAfter && r.PollBefore <= r.PollAfter && r.PostBefore <= r.PollAfter
		require.True(t, ordered && r.PostBefore != 0 && r.Requests != 0, "%+v", r)
		require.LessOrEqual(t, r.Due, r.PollAfter, "%+v", r)
	}
	assert.Equal(t, n.Completions, sends)
	assert.Equal(t, n.RecvCompletions, recvs)
	assert.Equal(t, n.Completions+n.UnsignaledRetired, requests)
	assert.Equal(t, got.truth.SlowTotal, slow)
	assert.Len(t, got.truth.Slow, int(slow))
}

// checkSpecial is what each scenario is there for.
func checkSpecial(t *testing.T, scenario string, got result) {
	t.Helper()
	n := got.truth.Counts
	switch scenario {
	case "perftest":
		assert.Greater(t, n.UnsignaledRetired, 90*n.Completions)
	case "nccl":
		assert.NotZero(t, collisions(got.records), "sends and receives of one queue share wr_ids")
	case "enomem":
		assert.NotZero(t, n.RejectedPosts)
		assert.NotZero(t, n.Undone)
	case "unsignaled":
		assert.Greater(t, n.UnsignaledRetired, 100*n.Completions)
	case "hang":
		assert.EqualValues(t, 4, n.Outstanding)
	case "slow-device":
		assert.Equal(t, n.Completions, got.truth.SlowTotal)
	case "two-devices":
		checkTwins(t, got.truth)
	case "churn":
		assert.NotZero(t, n.Discarded)
		assert.Greater(t, len(got.truth.Queues), numbers(got.truth), "numbers are used again")
	case "rnr":
		assert.NotZero(t, waits(got.truth))
	case "poll256":
		assert.Equal(t, 256, largestBatch(got.records))
	case "errors":
		assert.NotZero(t, collisions(got.records))
		assert.NotZero(t, n.Flushed)
		assert.NotZero(t, n.RecvFlushed)
		assert.NotZero(t, n.Errors)
	case "hostile-cycle", "hostile-pointer":
		assert.NotZero(t, n.Undone)
	case "hostile-chain":
		assert.EqualValues(t, 10000, most(got.records))
	case "deep-chain":
		assert.EqualValues(t, 1000, most(got.records))
	case "idle-poll":
		assert.Greater(t, n.EmptyPolls, 500*n.Completions)
	case "srq", "ud", "uc":
		assert.Equal(t, n.Completions, n.RecvCompletions)
	}
}

// collisions counts pairs of a send and a receive with one wr_id on one queue.
func collisions(records []Record) int {
	type key struct {
		qp uint32
		id uint64
	}
	sent, found := map[key]bool{}, 0
	for i := range records {
		if r := &records[i]; !r.Recv() {
			sent[key{r.QPNumber, r.WRID}] = true
		}
	}
	for i := range records {
		if r := &records[i]; r.Recv() && sent[key{r.QPNumber, r.WRID}] {
			found++
		}
	}
	return found
}

// waits counts requests that the device itself finished late.
func waits(truth Truth) (n int) {
	for _, r := range truth.Slow {
		if r.Due-r.Posted > truth.Threshold {
			n++
		}
	}
	return n
}

// largestBatch is the most completions that one poll returned.
func largestBatch(records []Record) (n int) {
	polls := map[uint64]int{}
	for i := range records {
		polls[records[i].PollBefore]++
		n = max(n, polls[records[i].PollBefore])
	}
	return n
}

func most(records []Record) (requests uint32) {
	for i := range records {
		requests = max(requests, records[i].Requests)
	}
	return requests
}

func numbers(truth Truth) int {
	seen := map[uint32]bool{}
	for _, q := range truth.Queues {
		seen[q.QPNumber] = true
	}
	return len(seen)
}

// checkTwins: each number is on both devices, in two contexts.
func checkTwins(t *testing.T, truth Truth) {
	t.Helper()
	devices := map[uint32]map[string]uint64{}
	for _, q := range truth.Queues {
		if devices[q.QPNumber] == nil {
			devices[q.QPNumber] = map[string]uint64{}
		}
		devices[q.QPNumber][q.Device] = q.Context
	}
	for number, contexts := range devices {
		require.Len(t, contexts, 2, "0x%x", number)
		assert.NotEqual(t, contexts["sim0"], contexts["sim1"])
	}
}
