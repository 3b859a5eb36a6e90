package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// loopResult is what the measured loop prints: medians over many short
// stretches, in nanoseconds, and how much it did in all.
type loopResult struct {
	PollNs      map[string]float64 `json:"poll_ns"`
	PostNs      float64            `json:"post_ns"`
	Polls       uint64             `json:"polls"`
	Completions uint64             `json:"completions"`
	Posts       uint64             `json:"posts"`
}

// runLoop runs the measured loop once, for so long for each number.
func (b *bench) runLoop(ctx context.Context, cell time.Duration) (loopResult, error) {
	out, err := output(command(ctx, syscall.SIGTERM, loopPath,
		"--provider", b.library,
		"--cpu", strconv.Itoa(b.cpu),
		"--cell-ms", strconv.FormatInt(cell.Milliseconds(), 10),
		"--empty", strings.Join(emptyPolls, ",")))
	if err != nil {
		return loopResult{}, err
	}
	return parseLoop(out)
}

func parseLoop(out []byte) (loopResult, error) {
	var r loopResult
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("reading what the loop printed, %.200q: %w", out, err)
	}
	for _, n := range emptyPolls {
		if _, ok := r.PollNs[n]; !ok {
			return r, fmt.Errorf("the loop did not measure %s empty polls", n)
		}
	}
	return r, nil
}

// holder has the library in use, so that a tracer that starts finds it.
type holder struct {
	command *exec.Cmd
	input   io.Closer
}

func (b *bench) startHolder(ctx context.Context) (*holder, error) {
	c := command(ctx, syscall.SIGTERM, loopPath, "--provider", b.library, "--hold")
	input, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", loopPath, err)
	}
	h := &holder{command: c, input: input}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		h.close()
		return nil, fmt.Errorf("%s --hold did not become ready: %w", loopPath, err)
	}
	return h, nil
}

func (h *holder) pid() int { return h.command.Process.Pid }

func (h *holder) close() {
	_ = h.input.Close()
	_ = h.command.Wait()
}
