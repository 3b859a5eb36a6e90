// Package perftest knows what the programs of linux-rdma/perftest do on the
// queues, so that what a tracer counted can be held against it exactly, and
// reads their per-iteration reports. It follows version 4.5-0.17.
package perftest

import (
	"fmt"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Tool is a program of perftest.
type Tool string

// The programs the lab runs.
const (
	WriteLatency   Tool = "ib_write_lat"
	SendLatency    Tool = "ib_send_lat"
	ReadLatency    Tool = "ib_read_lat"
	WriteBandwidth Tool = "ib_write_bw"
	SendBandwidth  Tool = "ib_send_bw"
)

// Run is one run of a tool over a reliable connection (RC) with one QP,
// messages posted one at a time, no warm-up and the classic post_send
// interface: what perftest does on a device it does not know, such as rxe.
type Run struct {
	Tool Tool
	// Iterations is -n, at least 5.
	Iterations int
	// Size is -s, in bytes.
	Size int
	// Events lets both sides sleep until the event of a completion (-e).
	Events bool
	// Port is the TCP port where the server waits, DefaultPort when 0.
	Port int
}

// DefaultPort is where a perftest server waits for its client.
const DefaultPort = 18515

// Work is what one side puts on its queues.
type Work struct {
	// Operation of the send requests.
	Operation verbs.Operation
	// SendRequests is the number of requests posted on the Send Queue.
	SendRequests uint64
	// SendCompletions is the number of completions polled for them: less than
	// SendRequests when most are unsignaled.
	SendCompletions uint64
	// Receives is the number of completions of receive requests polled.
	Receives uint64
}

// SendBytes returns the payload of the send requests.
func (w Work) SendBytes(size int) uint64 { return w.SendRequests * uint64(size) }

// ReceiveBytes returns the payload of the receives.
func (w Work) ReceiveBytes(size int) uint64 { return w.Receives * uint64(size) }

// perftest_parameters.h of 4.5-0.17.
const (
	minIterations       = 5
	bandwidthDepth      = 128  // DEF_TX_BW
	defaultModeration   = 100  // DEF_CQ_MOD
	moderationSizeLimit = 8192 // MSG_SIZE_CQ_MOD_LIMIT
)

// Work returns what the client and the server do on their queues.
func (r Run) Work() (client, server Work, err error) {
	if r.Iterations < minIterations || r.Size <= 0 {
		return Work{}, Work{}, fmt.Errorf("%s with %d iterations of %d bytes is refused by perftest or has no payload", r.Tool, r.Iterations, r.Size)
	}
	n := uint64(r.Iterations)
	switch r.Tool {
	case WriteLatency: // run_iter_lat_write: a ping-pong, every write signaled
		both := Work{Operation: verbs.OpRDMAWrite, SendRequests: n, SendCompletions: n}
		return both, both, nil
	case SendLatency: // run_iter_lat_send: Send Queue depth 1 lowers the moderation to 1
		both := Work{Operation: verbs.OpSend, SendRequests: n, SendCompletions: n, Receives: n}
		return both, both, nil
	case ReadLatency: // run_iter_lat: the server posts nothing
		return Work{Operation: verbs.OpRDMARead, SendRequests: n, SendCompletions: n}, Work{}, nil
	case WriteBandwidth: // run_iter_bw
		return Work{Operation: verbs.OpRDMAWrite, SendRequests: n, SendCompletions: r.signaled()}, Work{}, nil
	case SendBandwidth: // run_iter_bw and run_iter_bw_server
		return Work{Operation: verbs.OpSend, SendRequests: n, SendCompletions: r.signaled()}, Work{Receives: n}, nil
	default:
		return Work{}, Work{}, fmt.Errorf("unknown perftest tool %q", r.Tool)
	}
}

// signaled returns how many requests of a bandwidth test ask for a completion:
// every moderation-th and the last.
func (r Run) signaled() uint64 {
	moderation := min(defaultModeration, bandwidthDepth, r.Iterations)
	if r.Size > moderationSizeLimit {
		moderation = 1
	}
	return uint64((r.Iterations + moderation - 1) / moderation)
}

// Arguments returns the command line of a side; peer is the server's address
// for the client and "" for the server. Reports are per iteration, unsorted and in
// cycles where the tool has them: what perftest makes of cycles may be off by a tenth,
// as it calibrates its clock in a millisecond.
func (r Run) Arguments(device string, gidIndex int, peer string) []string {
	args := []string{
		string(r.Tool), "-d", device, "-x", fmt.Sprint(gidIndex), "-F",
		"-n", fmt.Sprint(r.Iterations), "-s", fmt.Sprint(r.Size),
	}
	switch r.Tool {
	case WriteLatency, SendLatency, ReadLatency:
		args = append(args, "-U", "-C")
	}
	if r.Events {
		args = append(args, "-e")
	}
	if r.Port != 0 {
		args = append(args, "-p", fmt.Sprint(r.Port))
	}
	if peer != "" {
		args = append(args, peer)
	}
	return args
}
