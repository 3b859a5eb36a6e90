//go:build e2e

package tracer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// record is one completion by the workload's own clock.
type record struct {
	WRID, PostBefore, PostAfter, PollBefore, PollAfter, Context, Bytes uint64
	QPNum, Requests                                                     uint32
	Op, Status                                                          uint16
	Flags                                                               uint32
	Due                                                                 uint64
}

func (r *record) isReceive() bool  { return r.Flags&1 != 0 }
func (r *record) overlapped() bool { return r.Flags&2 != 0 }

type counts struct {
	Posted, Signaled, Undone, Completions, Flushed, Errors, Discarded uint64
	RejectedPosts                                                     uint64 `json:"rejected_posts"`
	Retired                                                           uint64 `json:"unsignaled_retired"`
	RecvCompletions                                                   uint64 `json:"recv_completions"`
	Outstanding                                                       uint64 `json:"outstanding_at_end"`
	SendBytes                                                         uint64 `json:"send_bytes"`
	ReadBytes                                                         uint64 `json:"read_bytes"`
	RecvBytes                                                         uint64 `json:"recv_bytes"`
}

type truth struct {
	Scenario string
	PID      int
	Counts   counts
	QPs      []struct {
		CreatedNS uint64 `json:"created_ns"`
	}
}

// begin is when the workload that wrote the truth made its first queue: a
// process that has executed itself tells of its second half alone.
func (w *truth) begin() uint64 {
	first := ^uint64(0)
	for _, qp := range w.QPs {
		first = min(first, qp.CreatedNS)
	}
	return first
}

// run is one scenario as both sides saw it.
type run struct {
	truth    truth
	records  []record
	seen     []verbs.Completion
	stuck    []verbs.Stuck
	before   verbs.Snapshot // after the provider was made known
	snapshot verbs.Snapshot
	output   string
}

func startTracer(t *testing.T, cfg tracer.Config) *tracer.Tracer {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: probes cannot be attached without it")
	}
	level := slog.LevelInfo
	cfg.Logger = slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: level}))
	tr, err := tracer.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func verbsim(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/verbsim")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("bin/verbsim is not built: make -C internal/verbsim")
	}
	return path
}

// collector gathers what the tracer delivers until it is closed.
type collector struct {
	mu          sync.Mutex
	completions []verbs.Completion
	stuck       []verbs.Stuck
}

func collect(tr *tracer.Tracer) *collector {
	c := &collector{}
	go func() {
		for completion := range tr.Completions() {
			c.mu.Lock()
			c.completions = append(c.completions, completion)
			c.mu.Unlock()
		}
	}()
	go func() {
		for stuck := range tr.Stuck() {
			c.mu.Lock()
			c.stuck = append(c.stuck, stuck)
			c.mu.Unlock()
		}
	}()
	return c
}

func (c *collector) settle() ([]verbs.Completion, []verbs.Stuck) {
	last := -1
	for {
		c.mu.Lock()
		n := len(c.completions)
		c.mu.Unlock()
		if n == last {
			break
		}
		last = n
		time.Sleep(300 * time.Millisecond)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.completions, c.stuck
}

// simulate runs a scenario under the tracer. The workload is held before its
// first post until its library is probed.
func simulate(t *testing.T, tr *tracer.Tracer, scenario string, flags ...string) *run {
	t.Helper()
	binary := verbsim(t)
	dir := t.TempDir()
	truthFile, recordFile := filepath.Join(dir, "truth.json"), filepath.Join(dir, "records.bin")
	ready, wait := filepath.Join(dir, "ready"), filepath.Join(dir, "go")
	collected := collect(tr)
	makeKnown(t, binary, flags)

	before, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}

	args := append([]string{scenario, "--truth", truthFile, "--truth-records", recordFile, "--ready-file", ready, "--wait-file", wait}, flags...)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, binary, args...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	waitForFile(t, ready, 10*time.Second)
	begun := time.Now()
	if err := os.WriteFile(wait, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatalf("verbsim %s: %v\n%s", scenario, err, output.String())
	}
	t.Logf("the workload took %v", time.Since(begun).Round(time.Millisecond))
	r := &run{output: output.String()}
	time.Sleep(200 * time.Millisecond)
	r.seen, r.stuck = collected.settle()
	if r.snapshot, err = tr.Snapshot(); err != nil {
		t.Fatal(err)
	}
	r.before = before
	r.truth, r.records = readTruth(t, truthFile, recordFile)
	return r
}

// makeKnown lets the tracer meet the provider's library, so that the scenario
// itself is seen from its start, as that of any library on disk is.
func makeKnown(t *testing.T, binary string, flags []string) {
	t.Helper()
	args := []string{"perftest-lat", "--requests", "1", "--start-delay-ms", "400"}
	for i, flag := range flags {
		if flag == "--provider" {
			args = append(args, flag, flags[i+1])
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput(); err != nil {
		t.Fatalf("verbsim %v: %v: %s", args, err, out)
	}
}

func waitForFile(t *testing.T, path string, limit time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	t.Fatalf("%s did not appear within %v", path, limit)
}

func readTruth(t *testing.T, truthFile, recordFile string) (truth, []record) {
	t.Helper()
	raw, err := os.ReadFile(truthFile)
	if err != nil {
		t.Fatal(err)
	}
	var what truth
	if err := json.Unmarshal(raw, &what); err != nil {
		t.Fatal(err)
	}
	raw, err = os.ReadFile(recordFile)
	if err != nil {
		t.Fatal(err)
	}
	records := make([]record, len(raw)/binary.Size(record{}))
	if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, records); err != nil {
		t.Fatal(err)
	}
	return what, records
}

type unitKey struct {
	context uint64
	qp      uint32
	wrID    uint64
}

// pair finds the record of every completion the tracer reported, by the
// brackets around its post and its poll. It reports completions that have
// none: wrong pairs.
func pair(r *run) (wrong []string, checked int) {
	byKey := map[unitKey][]*record{}
	for i := range r.records {
		rec := &r.records[i]
		if !rec.isReceive() {
			key := unitKey{rec.Context, rec.QPNum, rec.WRID}
			byKey[key] = append(byKey[key], rec)
		}
	}
	for _, list := range byKey {
		sort.Slice(list, func(i, j int) bool { return list[i].PollAfter < list[j].PollAfter })
	}
	for i := range r.seen {
		c := &r.seen[i]
		if int(c.Queue.Process.TGID) != r.truth.PID || c.Posted < r.truth.begin() {
			continue
		}
		checked++
		list := byKey[unitKey{c.Queue.Context, c.Queue.QPNumber, c.WRID}]
		first := sort.Search(len(list), func(j int) bool { return list[j].PollAfter >= c.Delivered })
		found := false
		problem := "no completion of that wr_id was polled at that time"
		for ; first < len(list) && list[first].PollBefore <= c.Delivered; first++ {
			if p := differs(c, list[first]); p == "" {
				found = true
				break
			} else {
				problem = p
			}
		}
		if !found {
			wrong = append(wrong, fmt.Sprintf("qp %#x wr_id %#x op %s posted %d delivered %d: %s",
				c.Queue.QPNumber, c.WRID, c.Operation, c.Posted, c.Delivered, problem))
		}
	}
	return wrong, checked
}

func differs(c *verbs.Completion, rec *record) string {
	switch {
	case c.Posted < rec.PostBefore || c.Posted > rec.PostAfter:
		return fmt.Sprintf("it was posted between %d and %d", rec.PostBefore, rec.PostAfter)
	case uint16(c.Status) != rec.Status:
		return fmt.Sprintf("its status was %d, not %d", rec.Status, c.Status)
	case uint16(c.Operation) != rec.Op:
		return fmt.Sprintf("its operation was %d, not %d", rec.Op, c.Operation)
	case c.Bytes != rec.Bytes && !rec.overlapped():
		return fmt.Sprintf("it had %d bytes, not %d", rec.Bytes, c.Bytes)
	case c.Requests != rec.Requests && !rec.overlapped():
		return fmt.Sprintf("it had %d requests, not %d", rec.Requests, c.Requests)
	}
	var sum time.Duration
	for _, stage := range c.Stages {
		sum += stage
	}
	if sum != c.Duration() {
		return fmt.Sprintf("its stages add up to %v of %v", sum, c.Duration())
	}
	return ""
}

func (r *run) checkBooks(t *testing.T) {
	t.Helper()
	if n := r.snapshot.WQEs.Unexplained(); n != 0 {
		t.Errorf("%d work requests unexplained: %+v", n, r.snapshot.WQEs)
	}
	if n := r.snapshot.Completions.Unexplained(); n != 0 {
		t.Errorf("%d completions unexplained: %+v", n, r.snapshot.Completions)
	}
	if got, want := r.snapshot.Completions.Seen-r.before.Completions.Seen, r.truth.Counts.Completions+r.truth.Counts.RecvCompletions; got != want {
		t.Errorf("%d completions seen, the workload polled %d", got, want)
	}
	for _, n := range []struct {
		what      string
		got, want uint64
	}{
		{"posted", r.snapshot.WQEs.Posted - r.before.WQEs.Posted, r.truth.Counts.Posted},
		{"undone", r.snapshot.WQEs.Undone - r.before.WQEs.Undone, r.truth.Counts.Undone},
		{"retired", r.snapshot.WQEs.Retired - r.before.WQEs.Retired, r.truth.Counts.Retired},
	} {
		if n.got != n.want {
			t.Errorf("%d work requests %s, by the workload %d", n.got, n.what, n.want)
		}
	}
}

func (r *run) checkPairs(t *testing.T) {
	t.Helper()
	wrong, checked := pair(r)
	for i, problem := range wrong {
		if i == 5 {
			t.Errorf("and %d more", len(wrong)-i)
			break
		}
		t.Errorf("wrong pair: %s", problem)
	}
	matched := r.matched()
	if dropped := r.snapshot.Losses["ring_buffer_full"] + r.snapshot.Losses["consumer_too_slow"]; uint64(checked)+dropped != matched {
		t.Errorf("%d pairs checked and %d reports dropped of %d matched", checked, dropped, matched)
	}
	t.Logf("%d pairs checked, %d wrong; completions %+v; losses %v", checked, len(wrong), r.snapshot.Completions, nonZero(r.snapshot.Losses))
}

func (r *run) matched() uint64 { return r.snapshot.Completions.Matched - r.before.Completions.Matched }

func nonZero(m map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for k, v := range m {
		if v != 0 {
			out[k] = v
		}
	}
	return out
}

var everything = tracer.Config{EventBytes: 64 << 20, MaxMapBytes: 128 << 20}

func TestScenarios(t *testing.T) {
	for _, s := range []struct {
		name  string
		flags []string
		// untimed is what the design leaves out of matched.
		untimed bool
	}{
		{name: "nccl"},
		{name: "nccl", flags: []string{"--provider", "../../bin/libverbsim-rdmav34-nocet.so"}},
		{name: "nccl-saturated"},
		{name: "perftest"},
		{name: "perftest-lat"},
		{name: "sig-all"},
		{name: "enomem"},
		{name: "late-poller"},
		{name: "slow-device"},
		{name: "errors", untimed: true},
		{name: "hang"},
		{name: "two-devices"},
		{name: "churn"},
		{name: "threads", untimed: true},
		{name: "fork-exec"},
		{name: "deep-chain"},
		{name: "sge32"},
		{name: "poll256"},
		{name: "srq"},
		{name: "ud"},
		{name: "uc"},
		{name: "hostile-cycle"},
		{name: "hostile-pointer"},
		{name: "hostile-chain", untimed: true},
		{name: "rate"},
		{name: "idle-poll"},
	} {
		name := s.name
		if len(s.flags) > 0 {
			name += "/" + filepath.Base(s.flags[len(s.flags)-1])
		}
		t.Run(name, func(t *testing.T) {
			tr := startTracer(t, everything)
			r := simulate(t, tr, s.name, append([]string{"--seconds", "1.5"}, s.flags...)...)
			r.checkBooks(t)
			r.checkPairs(t)
			t.Logf("truth %+v", r.truth.Counts)
			t.Logf("wqes %+v", r.snapshot.WQEs)
			if !s.untimed && r.matched() != r.truth.Counts.Completions {
				t.Errorf("%d matched of %d", r.matched(), r.truth.Counts.Completions)
			}
		})
	}
}

