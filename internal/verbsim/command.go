package verbsim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// stopGrace is how long a workload has to drain and write its truth after the
// context ended, before it is killed.
const stopGrace = 30 * time.Second

// Scenarios returns the names of the scenarios, those of driver/scenarios.c; a
// test compares the two.
func Scenarios() []string {
	return []string{
		"nccl", "nccl-saturated", "perftest", "perftest-lat", "sig-all", "enomem", "unsignaled",
		"late-poller", "busy-poller", "starved-cq", "stalled-post", "slow-device", "errors", "hang", "two-devices", "churn",
		"threads", "fork-exec", "deep-chain", "sge32", "poll256", "srq", "ud", "uc",
		"rnr", "hostile-cycle", "hostile-pointer", "hostile-chain",
		"ext-post", "ext-poll", "ext-both", "ext-enomem", "ext-errors", "ext-ud", "rate", "varied", "idle-poll",
	}
}

// Command prepares a run of the workload. The end of the context asks it to
// stop with SIGTERM, on which it drains its queues and writes its truth. The
// caller sets Stdout, where one line of JSON will appear, and Stderr.
func Command(ctx context.Context, binary, scenario string, flags ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, append([]string{scenario}, flags...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	return cmd
}

// Summary is the line that a workload prints when it ends.
type Summary struct {
	Scenario string `json:"scenario"`
	PID      int    `json:"pid"`
	// OK says that the workload's own checks held, Failure which did not.
	OK      bool    `json:"ok"`
	Failure string  `json:"failure"`
	Seconds float64 `json:"seconds"`
	// As the fields of Counts; Requests is Posted, Slow is SlowTotal.
	Requests          uint64 `json:"requests"`
	Undone            uint64 `json:"undone"`
	Completions       uint64 `json:"completions"`
	UnsignaledRetired uint64 `json:"unsignaled_retired"`
	Discarded         uint64 `json:"discarded"`
	Outstanding       uint64 `json:"outstanding_at_end"`
	RecvCompletions   uint64 `json:"recv_completions"`
	Flushed           uint64 `json:"flushed"`
	Errors            uint64 `json:"errors"`
	Slow              uint64 `json:"slow"`
	Spikes            uint64 `json:"spikes"`
	Polls             uint64 `json:"polls"`
	EmptyPolls        uint64 `json:"empty_polls"`
}

// ParseSummary reads the line that a workload printed.
func ParseSummary(stdout []byte) (Summary, error) {
	var s Summary
	if err := json.Unmarshal(bytes.TrimSpace(stdout), &s); err != nil {
		return Summary{}, fmt.Errorf("reading the summary of a workload from %.200q: %w", stdout, err)
	}
	return s, nil
}
