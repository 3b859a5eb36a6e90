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

// Completion is one slow or failed unit of work, measured. Times are on
// CLOCK_MONOTONIC, durations are exact to the nanosecond of that clock.
type Completion struct {
	Queue  QueueID
	QPType QPType
	// RemoteQP is the QP number of the peer; 0 when unknown.
	RemoteQP uint32
	// CQ is the address of the ibv_cq in the process.
	CQ uint64
	// CQNumber is the kernel's number of that CQ, as "rdma resource show cq"
	// prints it; it means something when HasCQNumber.
	CQNumber    uint32
	HasCQNumber bool
	// CQSize is how many completions the CQ holds, 0 when unknown.
	CQSize uint32
	// Setup is what the QP was set up for, Path how it reaches its peer.
	Setup Setup
	Path  Path
	// Device is the name of the RDMA device, "" when it could not be read.
	Device string
	// Port is the device port, 0 when unknown (ports count from 1).
	Port uint8

	Operation   Operation
	Status      Status
	VendorError uint32
	WRID        uint64
	// Bytes is the payload of the whole unit, from the posted requests.
	Bytes uint64
	// LocalKey is the lkey of the first scatter/gather element of the signaled
	// request, 0 when there is none. Memory is what was registered under it.
	LocalKey uint32
	Memory   Memory
	// Requests counts the work requests of the unit, the silently retired
	// unsignaled ones included; at least 1.
	Requests uint32
	// Outstanding is the number of work requests on the Send Queue when the
	// signaled one was posted, itself included.
	Outstanding uint32

	// Posted is when post_send was entered, Delivered when poll_cq handed
	// the completion over, in nanoseconds of CLOCK_MONOTONIC.
	Posted, Delivered uint64
	// Stages add up to Delivered−Posted. Known says which of them were told
	// apart; the others are 0 and mean nothing.
	Stages [NumStages]time.Duration
	Known  StageSet
	// Busy is the time the port needed for what it retired meanwhile.
	// HasBusy is false when the rate or the device is not known.
	Busy    time.Duration
	HasBusy bool
	// Threshold is the limit that Duration−Busy exceeded.
	Threshold time.Duration

	Poster, Poller Thread
	Span           SpanContext
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
	Queue    QueueID
	QPType   QPType
	RemoteQP uint32
	// CQ is the address of the Send Queue's ibv_cq, 0 when unknown.
	CQ uint64
	// CQNumber, CQSize, Setup and Path are as in Completion.
	CQNumber    uint32
	HasCQNumber bool
	CQSize      uint32
	Setup       Setup
	Path        Path
	Device      string
	Port        uint8
	Operation   Operation
	WRID        uint64
	Bytes       uint64
	// LocalKey and Memory are as in Completion.
	LocalKey uint32
	Memory   Memory
	// Posted is in nanoseconds of CLOCK_MONOTONIC, Age at the time of the scan.
	Posted      uint64
	Age         time.Duration
	Outstanding uint32
	Poster      Thread
}
