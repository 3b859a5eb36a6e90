package verbs

import "time"

// Stage is one part of the duration of a unit of work: one signaled work
// request together with the unsignaled ones it retires.
type Stage uint8

// The stages, in the order of time. StageSubmit replaces StagePost and StageQueue
// where the return of the post is not known: it lasts until the unit is the
// oldest of its queue. StageCompletion is what follows and cannot be told apart:
// StageDevice, with StagePoll where no earlier poll is known, and with the end of
// the post where its return is not known.
const (
	StagePost Stage = iota
	StageQueue
	StageSubmit
	StageDevice
	StageCompletion
	StagePoll
	NumStages
)

var stageNames = [NumStages]string{"post", "queue", "submit", "device", "completion", "poll"}

// String returns the value of the attribute rdma.wqe.stage.
func (s Stage) String() string {
	if s < NumStages {
		return stageNames[s]
	}
	return "unknown"
}

// StageSet is a set of stages, bit i standing for Stage(i).
type StageSet uint8

// Has reports whether the stage is in the set.
func (s StageSet) Has(stage Stage) bool { return s&(1<<stage) != 0 }

// Thread is where something ran: the thread and its CPU at that moment.
type Thread struct {
	// TID is the thread id in the initial PID namespace, 0 when unknown.
	TID uint32
	// CPU is the logical CPU number. It is meaningful only when TID is known.
	CPU uint32
	// Name is the thread's comm, "" when unknown.
	Name string
}

// SpanContext is the trace context of the posting thread, where another tool
// shares it. The zero value means that there is none.
type SpanContext struct {
	TraceID [16]byte
	SpanID  [8]byte
}

// WorkRequest is what is known of a signaled work request from its post on, by
// the process and by the kernel. What is not known is 0.
type WorkRequest struct {
	Queue  QueueID
	QPType QPType
	// RemoteQP is the QP number of the peer.
	RemoteQP uint32
	// CQ is the address of the Send Queue's ibv_cq in the process.
	CQ uint64
	// CQNumber is the kernel's number of that CQ, as "rdma resource show cq"
	// prints it; it means something when HasCQNumber.
	CQNumber    uint32
	HasCQNumber bool
	// CQSize is how many completions the CQ holds.
	CQSize uint32
	// Setup is what the QP was set up for, Path how it reaches its peer.
	Setup Setup
	Path  Path
	// Device is the name of the RDMA device, "" when it could not be read.
	Device string
	// Port is the device port (ports count from 1).
	Port uint8

	Operation Operation
	WRID      uint64
	// Bytes is the payload: of a completion that of the whole unit.
	Bytes uint64
	// LocalKey is the lkey of its first scatter/gather element, 0 when there is
	// none. Memory is what was registered under it.
	LocalKey uint32
	Memory   Memory
	// Outstanding is the number of work requests on the Send Queue, itself
	// included: of a completion at the time of its post, of what is stuck now.
	Outstanding uint32
	// Posted is when post_send was entered, in nanoseconds of CLOCK_MONOTONIC,
	// Poster the thread that did.
	Posted uint64
	Poster Thread
}

// Completion is one slow or failed unit of work, measured. Times are on
// CLOCK_MONOTONIC, durations are exact to the nanosecond of that clock.
type Completion struct {
	WorkRequest

	Status      Status
	VendorError uint32
	// Requests counts the work requests of the unit, the silently retired
	// unsignaled ones included; at least 1.
	Requests uint32

	// Delivered is when poll_cq handed the completion over, in nanoseconds of
	// CLOCK_MONOTONIC, Poller the thread that got it.
	Delivered uint64
	Poller    Thread
	// PosterScheduling and PollerScheduling are what the kernel did with the two
	// threads between Posted and Delivered. Without HasPosterScheduling or
	// HasPollerScheduling the thread was not watched or is the kernel's.
	PosterScheduling, PollerScheduling       Scheduling
	HasPosterScheduling, HasPollerScheduling bool
	// Stages add up to Delivered−Posted. Known says which of them were told
	// apart; the others are 0 and mean nothing.
	Stages [NumStages]time.Duration
	Known  StageSet
	// Elsewhere is for how much of StagePoll, at least, Poller polled other
	// Completion Queues, with no pause of more than 20 µs between the polls. It
	// means something when HasElsewhere: where the entries of polls were probed.
	Elsewhere    time.Duration
	HasElsewhere bool
	// Busy is the time the port needed for what it retired meanwhile.
	// HasBusy is false when the rate or the device is not known.
	Busy    time.Duration
	HasBusy bool
	// Threshold is the limit that Duration−Busy exceeded: the configured one, or a
	// higher one that was learned for its kind.
	Threshold time.Duration
	Span      SpanContext
}

// Duration is the time from the entry of post_send to the delivery of the
// completion.
func (c *Completion) Duration() time.Duration {
	return time.Duration(c.Delivered - c.Posted)
}

// Excess is the part of the duration that the port's work does not explain;
// never negative.
func (c *Completion) Excess() time.Duration {
	return max(c.Duration()-c.Busy, 0)
}

// Stuck is a send that has been outstanding for longer than the limit.
type Stuck struct {
	WorkRequest

	// Age is the time since the post when the queues were scanned.
	Age time.Duration
}
