package verbsim

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// maxTruth bounds what Read takes into memory, in bytes.
const maxTruth = 512 << 20

// Truth is what a workload did, as it wrote it with --truth. Times are
// nanoseconds of CLOCK_MONOTONIC.
type Truth struct {
	Scenario string `json:"scenario"`
	PID      int    `json:"pid"`
	// OK says that the workload's own checks held.
	OK bool `json:"ok"`
	// Start is when posting began, End when the scenario was over.
	Start uint64 `json:"start_ns"`
	End   uint64 `json:"end_ns"`
	// RealtimeOffset added to a time gives nanoseconds since the Unix epoch.
	RealtimeOffset int64 `json:"monotonic_to_realtime_offset_ns"`
	// Threshold is the duration beyond which a request is in Slow, Latency
	// the programmed one, both in nanoseconds.
	Threshold uint64   `json:"threshold_ns"`
	Latency   uint64   `json:"latency_ns"`
	Counts    Totals   `json:"counts"`
	Devices   []Device `json:"devices"`
	// Queues lists every queue pair there ever was, also those destroyed.
	Queues []Queue `json:"qps"`
	// Spikes lists the delays that were programmed and took place.
	Spikes []Spike `json:"spikes"`
	// Slow lists sends that took longer than Threshold, at most a million of
	// SlowTotal.
	SlowTotal uint64    `json:"slow_total"`
	Slow      []Request `json:"slow"`
}

// Counts are what became of work requests and completions. Of sends
// Posted = Undone + Completions + UnsignaledRetired + Discarded + Outstanding.
type Counts struct {
	// Posted counts send work requests that were handed to post_send,
	// Undone those of them from *bad_wr on, RejectedPosts the calls that
	// returned an error. Signaled counts accepted requests that ask for a
	// completion.
	Posted        uint64 `json:"posted"`
	Signaled      uint64 `json:"signaled"`
	Undone        uint64 `json:"undone"`
	RejectedPosts uint64 `json:"rejected_posts"`
	// Completions counts delivered completions of sends, with every status;
	// Flushed those with IBV_WC_WR_FLUSH_ERR, Errors those with another
	// error. UnsignaledRetired counts sends that a later completion retired.
	Completions       uint64 `json:"completions"`
	UnsignaledRetired uint64 `json:"unsignaled_retired"`
	Flushed           uint64 `json:"flushed"`
	Errors            uint64 `json:"errors"`
	// Discarded counts sends that a reset or destroy made vanish.
	Discarded   uint64 `json:"discarded"`
	Outstanding uint64 `json:"outstanding_at_end"`

	// The same of receives. Those of a Shared Receive Queue are posted in
	// the totals only; their completions belong to a queue pair.
	RecvPosted      uint64 `json:"recv_posted"`
	RecvUndone      uint64 `json:"recv_undone"`
	RecvCompletions uint64 `json:"recv_completions"`
	RecvFlushed     uint64 `json:"recv_flushed"`
	RecvErrors      uint64 `json:"recv_errors"`
	RecvDiscarded   uint64 `json:"recv_discarded"`
	RecvOutstanding uint64 `json:"recv_outstanding_at_end"`

	// Payload of requests that succeeded, by direction: sends and writes,
	// reads and atomics, receives (of datagrams with the 40-byte header).
	SendBytes uint64 `json:"send_bytes"`
	ReadBytes uint64 `json:"read_bytes"`
	RecvBytes uint64 `json:"recv_bytes"`
}

// Totals are the counts of all queues, and those of the Completion Queues.
type Totals struct {
	Counts
	Polls      uint64 `json:"polls"`
	EmptyPolls uint64 `json:"empty_polls"`
	// Delivered counts completions that polls returned: those of sends and
	// of receives.
	Delivered uint64 `json:"delivered"`
}

// Device is one simulated device.
type Device struct {
	Name string `json:"name"`
	// Context is the address of the ibv_context in the workload.
	Context uint64 `json:"ctx"`
	// Rate is that of the port in bits a second, 0 when it is infinite.
	Rate uint64 `json:"rate_bps"`
}

// Queue is one queue pair, from creation to destruction.
type Queue struct {
	Device    string `json:"device"`
	Context   uint64 `json:"ctx"`
	QPNumber  uint32 `json:"qp_num"`
	Type      string `json:"type"`
	SigAll    bool   `json:"sq_sig_all"`
	Shared    bool   `json:"shared"` // several threads post
	Depth     uint32 `json:"depth"`
	RecvDepth uint32 `json:"recv_depth"`
	Created   uint64 `json:"created_ns"`
	Destroyed uint64 `json:"destroyed_ns"` // 0: never
	Counts    Counts `json:"counts"`
}

// Request is one unit of work: a request with a completion and the unsignaled
// ones that it retired.
type Request struct {
	Device   string `json:"device"`
	Context  uint64 `json:"ctx"`
	QPNumber uint32 `json:"qp_num"`
	WRID     uint64 `json:"wr_id"`
	// Operation has the values of verbs.Operation, Status of verbs.Status.
	Operation uint8 `json:"op"`
	Status    uint8 `json:"status"`
	// Bytes and Requests are those of the whole unit.
	Bytes    uint64 `json:"size"`
	Requests uint32 `json:"requests"`
	// Posted is just before the post, Delivered just after the poll, Due
	// when the device was done (0: not known).
	Posted    uint64 `json:"post_ns"`
	Delivered uint64 `json:"completion_ns"`
	Due       uint64 `json:"due_ns"`
}

// Spike is a delay that the workload programmed, and the unit it fell on.
type Spike struct {
	// Delay in nanoseconds was added to the device's time, Armed is when.
	Delay uint64 `json:"delay_ns"`
	Armed uint64 `json:"armed_ns"`
	Request
}

// Unexplained is the number of posted sends that nothing accounts for: 0 when
// the books balance.
func (c Counts) Unexplained() int64 {
	return int64(c.Posted) - int64(c.Undone+c.Completions+c.UnsignaledRetired+c.Discarded+c.Outstanding)
}

// RecvUnexplained is the number of posted receives that nothing accounts for.
// It is meaningful for the totals: a Shared Receive Queue posts for others.
func (c Counts) RecvUnexplained() int64 {
	return int64(c.RecvPosted) - int64(c.RecvUndone+c.RecvCompletions+c.RecvDiscarded+c.RecvOutstanding)
}

// Read reads a truth file. The workload writes it when it ends, under its name
// only when it is whole.
func Read(path string) (Truth, error) {
	f, err := os.Open(path)
	if err != nil {
		return Truth{}, fmt.Errorf("reading the truth of a workload: %w", err)
	}
	defer f.Close()
	truth, err := decode(f)
	if err != nil {
		return Truth{}, fmt.Errorf("reading the truth of a workload from %s: %w", path, err)
	}
	return truth, nil
}

func decode(r io.Reader) (Truth, error) {
	var truth Truth
	limited := &io.LimitedReader{R: r, N: maxTruth}
	if err := json.NewDecoder(limited).Decode(&truth); err != nil {
		if limited.N <= 0 {
			return Truth{}, fmt.Errorf("it is longer than %d bytes", maxTruth)
		}
		return Truth{}, err
	}
	return truth, nil
}
