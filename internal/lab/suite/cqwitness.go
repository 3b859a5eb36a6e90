package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// cqWitness counts the completions that the RDMA core polls, by its own
// tracepoint: an account that owes nothing to probes on the driver. It leaves out
// the CQs of the management of the devices.
type cqWitness struct {
	management []int
}

const (
	cqInstance  = tracing + "instances/cqwitness/"
	cqPollEvent = cqInstance + "events/rdma_core/cq_poll/enable"
)

// startCQWitness enables the tracepoint in a buffer of its own.
func (g *Guest) startCQWitness() (*cqWitness, error) {
	if err := os.Mkdir(cqInstance, 0o755); err != nil {
		return nil, err
	}
	w := &cqWitness{management: g.managementCQs}
	return w, errors.Join(
		os.WriteFile(cqInstance+"buffer_size_kb", []byte("16384"), 0o644),
		os.WriteFile(cqPollEvent, []byte("1"), 0o644),
	)
}

// managementCQs lists the numbers that CQs of the kernel have on both devices while
// nothing else in it uses them: later there are those that consumers use, and some
// stay in the pool of a device for the next one. A tracepoint does not tell the
// device, so it has to be the same number.
func managementCQs(ctx context.Context) ([]int, error) {
	out, err := run(ctx, "rdma", "-j", "resource", "show", "cq")
	if err != nil {
		return nil, err
	}
	var list []struct {
		Device string `json:"ifname"`
		Number int    `json:"cqn"`
		PID    int    `json:"pid"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("rdma resource show cq: %w", err)
	}
	of := map[string][]int{}
	for _, c := range list {
		if c.PID == 0 {
			of[c.Device] = append(of[c.Device], c.Number)
		}
	}
	client, server := of[clientDevice], of[serverDevice]
	both := slices.DeleteFunc(slices.Clone(client), func(n int) bool { return !slices.Contains(server, n) })
	if len(both) == 0 {
		return nil, fmt.Errorf("the kernel has CQs %v on %s and %v on %s: the witness cannot tell those of the management", client, clientDevice, server, serverDevice)
	}
	return both, nil
}

// stop ends the trace and returns how many completions were polled.
func (w *cqWitness) stop() (uint64, error) {
	err := os.WriteFile(cqPollEvent, []byte("0"), 0o644)
	trace, errRead := os.ReadFile(cqInstance + "trace")
	err = errors.Join(err, errRead, os.Remove(strings.TrimSuffix(cqInstance, "/")))
	if err != nil {
		return 0, err
	}
	return w.sum(string(trace))
}

var (
	cqPollLine    = regexp.MustCompile(`cq_poll: cq\.id=(\d+) requested \d+, returned (-?\d+)`)
	tracedEntries = regexp.MustCompile(`entries-in-buffer/entries-written: (\d+)/(\d+)`)
)

// sum adds up what the polls returned.
func (w *cqWitness) sum(trace string) (uint64, error) {
	if m := tracedEntries.FindStringSubmatch(trace); m == nil || m[1] != m[2] {
		return 0, fmt.Errorf("the trace of polls is not whole: %q", m)
	}
	total := uint64(0)
	for _, m := range cqPollLine.FindAllStringSubmatch(trace, -1) {
		number, err := strconv.Atoi(m[1])
		if err != nil {
			return 0, err
		}
		returned, err := strconv.Atoi(m[2])
		if err != nil || returned < 0 {
			return 0, fmt.Errorf("a poll returned %s: %w", m[2], err)
		}
		if !slices.Contains(w.management, number) {
			total += uint64(returned)
		}
	}
	return total, nil
}
