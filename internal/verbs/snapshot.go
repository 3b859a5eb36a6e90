package verbs

import "time"

// SeriesKey names one cumulative aggregate.
type SeriesKey struct {
	Process   ProcessID
	Device    string
	Operation Operation
	Status    Status
}

// Series is what one process did with one operation on one device with one
// outcome, cumulative since it was first seen.
type Series struct {
	Key SeriesKey
	// Completions counts delivered completions; Timed is how many of them
	// were measured and are in Durations.
	Completions, Timed uint64
	// Requests counts work requests, the silently retired ones included.
	Requests uint64
	// Bytes is the payload of the completed work requests.
	Bytes uint64
	// Durations is the histogram of the timed completions, Sum their total,
	// Min and Max the extremes (0 when Timed is 0).
	Durations     Histogram
	Sum, Min, Max time.Duration
	// StageTime is the time spent in each stage by the timed completions.
	StageTime [NumStages]time.Duration
	// Slow counts completions over their limit, reported or not; Excess is
	// the time that the port's work does not explain, of the slow ones.
	Slow   uint64
	Excess time.Duration
}

// QueueInfo is the state of one queue at the time of a snapshot.
type QueueInfo struct {
	ID       QueueID
	Type     QPType
	RemoteQP uint32
	Device   string
	Port     uint8
	State    QueueState
	// SendCQ is the address of the ibv_cq, 0 when unknown, as it is of a consumer
	// in the kernel.
	SendCQ uint64
	// Poller is the id of the thread that polls SendCQ, 0 when it is not known or more
	// than one.
	Poller uint32
	// Outstanding is the number of work requests on the Send Queue now, Peak
	// the highest since the last snapshot, Limit what the QP was created for
	// (0 when creation was not seen).
	Outstanding, Peak, Limit uint32
	// Oldest is the age of the oldest outstanding signaled work request of a
	// synced queue, 0 when there is none.
	Oldest time.Duration
	// RecvOutstanding is the number of posted receives; meaningful only when
	// RecvKnown, which needs the queue to be seen from its start.
	RecvOutstanding uint32
	RecvKnown       bool
	// Posted counts the sends and Received the completed receives since the queue was
	// first seen.
	Posted, Received uint64
	// Activity is when the last send was posted or the last completion of one was
	// delivered, Delivered is the latter; on CLOCK_MONOTONIC in nanoseconds, 0 when
	// there was none.
	Activity, Delivered uint64
	// Path is how the queue pair reaches its peer, as far as the kernel tells.
	Path    Path
	Traffic Traffic
}

// RejectedPosts counts posts that the provider refused, by process, device
// and errno (12 is ENOMEM: the Send Queue was full; 0: the post was seen to
// fail, not what it returned). Cumulative.
type RejectedPosts struct {
	Process ProcessID
	Device  string
	Errno   uint32
	Count   uint64
}

// ReceiveEmpty counts how often a Receive Queue ran empty. Cumulative.
type ReceiveEmpty struct {
	Process ProcessID
	Device  string
	Count   uint64
}

// WQEBalance is the conservation of work requests:
// Posted = Delivered + Retired + Undone + Outstanding + ΣDiscarded + ΣLost.
type WQEBalance struct {
	Posted, Delivered, Retired, Undone, Outstanding uint64
	// Discarded by destroy, reset, exec and exit; Lost by reason.
	Discarded, Lost map[string]uint64
}

// Unexplained is Posted minus everything that accounts for it: 0 when the
// books balance.
func (b WQEBalance) Unexplained() int64 {
	sum := b.Delivered + b.Retired + b.Undone + b.Outstanding
	for _, n := range b.Discarded {
		sum += n
	}
	for _, n := range b.Lost {
		sum += n
	}
	return int64(b.Posted) - int64(sum)
}

// CompletionBalance is the conservation of completions: Seen is the sum of
// all the others.
type CompletionBalance struct {
	Seen uint64
	// Matched completions found their work request and were timed; receives
	// are matched by count.
	Matched, Received uint64
	// Unsynced completions found a work request on a queue that is not yet
	// aligned and were not timed. BeforeAttach belong to work requests posted
	// before the probes. Duplicate hits came through a second path to the
	// same file, Ambiguous ones could not be told apart, Unmatched ones had no
	// work request.
	Unsynced, BeforeAttach, Duplicate, Ambiguous, Unmatched uint64
}

// Unexplained is Seen minus everything that accounts for it: 0 when the books
// balance.
func (b CompletionBalance) Unexplained() int64 {
	return int64(b.Seen) - int64(b.Matched+b.Received+b.Unsynced+b.BeforeAttach+b.Duplicate+b.Ambiguous+b.Unmatched)
}

// ProbeInfo describes one library whose functions are probed.
type ProbeInfo struct {
	// Library is the path by which the file was found, Provider its name
	// (such as "mlx5"), Functions what is probed in it.
	Library, Provider string
	Functions         []string
	// Mode is how the functions are observed: "site" at completion sites,
	// "windows" at entry and return, "comparing" at both, "off" not at all,
	// "control" for the control path, "kernel" for consumers in the kernel.
	Mode string
	// Used reports whether they have been called so that it shows in costs. It is
	// never true of libibverbs, whose functions are called when queues come and
	// go.
	Used bool
	// Observed is the part of the time since the last snapshot for which the
	// library was observed, from 0 to 1. Sums are of what was observed.
	Observed float64
	// Paid is the part of that time that the probes of the library took of the thread
	// that they took the most of, from 0 to 1. It is 0 of what is in the kernel, where
	// it is not counted.
	Paid float64
	// Link is "multi" or "perf_event" for uprobes, "fentry" or "kprobe" in the
	// kernel.
	Link string
}

// Snapshot is everything the tracer knows at one moment, for metrics.
type Snapshot struct {
	// Monotonic is CLOCK_MONOTONIC in nanoseconds when it was taken.
	Monotonic uint64
	Series    []Series
	Queues    []QueueInfo
	// Ended are queues that are gone since the last snapshot, each once: who it
	// was, its Path and its Traffic.
	Ended []QueueInfo
	// UntrackedQueues counts queues over the bound, not in Queues.
	UntrackedQueues uint64
	Rejected        []RejectedPosts
	Empty           []ReceiveEmpty
	Registrations   []Registrations
	WQEs            WQEBalance
	Completions     CompletionBalance
	// Losses counts what was lost by reason, since the start.
	Losses map[string]uint64
	Probes []ProbeInfo
	// Exited lists processes that ended since the last snapshot and whose
	// series appear in this one for the last time.
	Exited []ProcessID
	// GoneDevices lists devices that no queue has been on for long and that sysfs does
	// not show. What was counted on them appears for the last time: where one comes
	// back it begins at 0. One is listed again when something was counted on it late.
	GoneDevices []string
}
