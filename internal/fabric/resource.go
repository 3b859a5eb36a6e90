package fabric

import (
	"strconv"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Owner is who made a resource.
type Owner struct {
	// PID is the process in the PID namespace of the reader; 0 for the kernel's
	// own, and for a process that has ended or is not in that namespace.
	PID uint32
	// Kernel is the module that a resource of the kernel belongs to, such as
	// "nvme_rdma"; "" for that of a process.
	Kernel string
}

// QPResource is a queue pair as the kernel lists it.
type QPResource struct {
	Device string
	// Port is nil for a queue pair that is not bound to one yet.
	Port  *uint32
	Owner Owner
	// Number is that of the queue pair.
	Number uint32
	// RemoteNumber is the peer's, nil except for connected ones.
	RemoteNumber *uint32
	// Type is the transport in the words of rdma.qp.type, or "smi" or "gsi" for
	// the kernel's management; "" when not known.
	Type string
	// State is the state in the kernel's words, such as "RTS"; "" when not
	// known.
	State string
}

// CQResource is a Completion Queue as the kernel lists it.
type CQResource struct {
	Device string
	Owner  Owner
	// Number is the kernel's own, as `rdma resource show cq` prints it, and not
	// that of the hardware; nil on kernels without it.
	Number *uint32
	// Entries is how many completions it can hold.
	Entries uint32
	// Users is how many queue pairs and the like use it, nil when not known.
	Users *uint64
	// PollContext is where the kernel polls its own, such as "SOFTIRQ"; "" for
	// those of processes.
	PollContext string
}

// MRResource is a memory region as the kernel lists it.
type MRResource struct {
	Device string
	Owner  Owner
	// Bytes is its length.
	Bytes uint64
}

// qpType is enum ib_qp_type, whose first two values are not user space's.
func qpType(value uint8) string {
	switch value {
	case 0:
		return "smi"
	case 1:
		return "gsi"
	default:
		return verbs.QPType(value).String()
	}
}

// qpState is enum ib_qp_state.
func qpState(value uint8) string {
	return nameOf(value, "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR")
}

// pollContext is enum ib_poll_context.
func pollContext(value uint8) string {
	return nameOf(value, "DIRECT", "SOFTIRQ", "WORKQUEUE", "UNBOUND_WORKQUEUE")
}

func nameOf(value uint8, names ...string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return "UNKNOWN_" + strconv.Itoa(int(value))
}
