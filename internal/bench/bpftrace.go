package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// bpftraceObserver is the naive job, as an operator with bpftrace would do it:
// the time of the post in a hash by wr_id, the list of completions kept from the
// entry of poll_cq to its return, the latency of the first of them.
type bpftraceObserver struct {
	script string

	command *exec.Cmd
	stop    context.CancelFunc
	lines   *bufio.Scanner
	// seen is how many completions it found the post of.
	seen uint64
}

// tracefs is where bpftrace makes its uprobes on systems where
// perf_event_open does not do.
const tracefs = "/sys/kernel/tracing"

// bpftraceScript probes the same instructions as entry and return probes of
// the tracer. Probes are attached one after the other: both ticks have come
// only when all are.
func bpftraceScript(library string, f functions) string {
	send := fmt.Sprintf("%s:%#x", library, f.postSend.ReturnOffset)
	poll := fmt.Sprintf("%s:%#x", library, f.pollCQ.ReturnOffset)
	return strings.Join([]string{
		`interval:ms:50 { printf("first\n"); }`,
		`uprobe:` + send + ` { @posted[*(uint64 *)arg1] = nsecs; }`,
		`uprobe:` + poll + ` { @list[tid] = arg2; }`,
		`uretprobe:` + poll + ` {`,
		`  if ((int32)retval > 0) {`,
		`    $id = *(uint64 *)@list[tid];`,
		`    if (@posted[$id]) { @ns = hist(nsecs - @posted[$id]); delete(@posted[$id]); }`,
		`  }`,
		`  delete(@list[tid]);`,
		`}`,
		`interval:ms:50 { printf("last\n"); }`,
	}, "\n")
}

// arguments run bpftrace, where tracefs is not mounted in a mount namespace
// that has it. The offsets are proven to be instructions; that bpftrace cannot
// check it in a stripped file is no reason to refuse.
func (o *bpftraceObserver) arguments() []string {
	run := []string{"bpftrace", "--unsafe", "-B", "line", "-f", "json", "-e", o.script}
	if _, err := os.Stat(tracefs + "/uprobe_events"); err == nil {
		return run
	}
	mount := `mount -t tracefs tracefs ` + tracefs + ` && exec "$@"`
	return append([]string{"unshare", "--mount", "sh", "-c", mount, "sh"}, run...)
}

func (o *bpftraceObserver) attach(ctx context.Context) error {
	if _, err := exec.LookPath("bpftrace"); err != nil {
		return fmt.Errorf("%w: scripts/setup.sh bench installs it", err)
	}
	ctx, o.stop = context.WithCancel(ctx)
	arguments := o.arguments()
	// SIGINT lets it print its maps and take its uprobes away.
	o.command = command(ctx, syscall.SIGINT, arguments[0], arguments[1:]...)
	complaint := new(strings.Builder)
	o.command.Stderr = complaint
	out, err := o.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := o.command.Start(); err != nil {
		return err
	}
	o.lines = bufio.NewScanner(out)
	if awaitTicks(o.lines) {
		return nil
	}
	o.stop()
	err = o.command.Wait()
	return fmt.Errorf("bpftrace did not attach (%w): %s", err, lastLine(complaint.String()))
}

// bpftraceLine is one line of bpftrace -f json.
type bpftraceLine struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// awaitTicks reads until both ticks have come, false when the output ends first.
func awaitTicks(lines *bufio.Scanner) bool {
	first, last := false, false
	for lines.Scan() {
		var line bpftraceLine
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Type != "printf" {
			continue
		}
		first = first || strings.Contains(string(line.Data), "first")
		last = last || strings.Contains(string(line.Data), "last")
		if first && last {
			return true
		}
	}
	return false
}

func (o *bpftraceObserver) detach() error {
	// The ticks that came meanwhile are in the pipe, the maps come behind them.
	o.stop()
	seen, err := histogramCount(o.lines)
	o.seen = seen
	if waited := o.command.Wait(); !ended(waited) {
		err = errors.Join(err, fmt.Errorf("bpftrace: %w", waited))
	}
	return err
}

// check says whether it did its job: a probe that is not hit costs nothing.
func (o *bpftraceObserver) check(completions uint64) error {
	if o.seen >= completions/10*9 && o.seen <= completions {
		return nil
	}
	return fmt.Errorf("bpftrace matched %d of %d completions: what it cost is not the cost of the job", o.seen, completions)
}

// histogramCount adds up the buckets of the map that bpftrace prints at its end.
func histogramCount(lines *bufio.Scanner) (uint64, error) {
	for lines.Scan() {
		var line bpftraceLine
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Type != "hist" {
			continue
		}
		var maps map[string][]struct {
			Count uint64 `json:"count"`
		}
		if err := json.Unmarshal(line.Data, &maps); err != nil {
			return 0, fmt.Errorf("reading the histogram of bpftrace: %w", err)
		}
		var sum uint64
		for _, bucket := range maps["@ns"] {
			sum += bucket.Count
		}
		return sum, nil
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("bpftrace printed no histogram: %w", io.ErrUnexpectedEOF)
}
