package verbs

import "strconv"

// ProcessID names one incarnation of a process: a PID alone is reused, and an
// exec replaces every queue without a new PID.
type ProcessID struct {
	// TGID is the process id in the initial PID namespace, see also InKernel.
	TGID uint32
	// Incarnation tells apart processes that had the same TGID, and the
	// program before an exec from the one after it. It is the start time in
	// nanoseconds since boot plus the kernel's number of the exec.
	Incarnation uint64
}

// KernelTGID is a bit of the TGID that no process has: it stands for a consumer of
// verbs in the kernel, such as NVMe over Fabrics, that takes the place of one.
const KernelTGID = 1 << 31

// InKernel reports whether it is a consumer in the kernel. Nothing about it is in
// /proc.
func (p ProcessID) InKernel() bool { return p.TGID&KernelTGID != 0 }

// QueueID names a Send Queue and Receive Queue pair (a QP). QP numbers repeat
// across devices, so the ibv_context is a part of it.
type QueueID struct {
	Process ProcessID
	// Context is the address of the ibv_context in the process. Of a consumer in
	// the kernel it is not to be shown.
	Context uint64
	// QPNumber is the 24-bit queue pair number.
	QPNumber uint32
}

// QPType is enum ibv_qp_type; 0 when it is not known.
type QPType uint8

// String returns the lower-case name, "" when the type is not known.
func (t QPType) String() string {
	switch t {
	case 0:
		return ""
	case 2:
		return "rc"
	case 3:
		return "uc"
	case 4:
		return "ud"
	case 8:
		return "raw_packet"
	case 9:
		return "xrc_send"
	case 10:
		return "xrc_recv"
	case 0xff:
		return "driver"
	default:
		return "type_" + strconv.Itoa(int(t))
	}
}

// QueueState says how much is known of a queue.
type QueueState uint8

// The states of a queue, the values of rdma.queue.state.
const (
	// QueueUnsynced: seen from mid-stream or after a loss; its work requests
	// are counted and never timed.
	QueueUnsynced QueueState = 0
	// QueueSynced: every outstanding work request is known.
	QueueSynced QueueState = 1
	// QueueUntracked: over the bound of queues or memory; not followed.
	QueueUntracked QueueState = 2
)

// String returns the value of the attribute rdma.queue.state.
func (s QueueState) String() string {
	switch s {
	case QueueSynced:
		return "synced"
	case QueueUntracked:
		return "untracked"
	default:
		return "unsynced"
	}
}
