// Package verbs is the vocabulary of the project: operations, statuses, queue
// identities, measured completions and the aggregates made of them. It holds
// types only and imports nothing of ours.
package verbs

// Operation is what a work request asks of the device. The values are the
// project's own, shared with the kernel side (bpf/verbs.h); they follow
// enum ibv_wr_opcode for sends.
type Operation uint8

// Operations. The values up to OpDriver equal enum ibv_wr_opcode of
// libibverbs (infiniband/verbs.h), those above are ours.
const (
	OpRDMAWrite         Operation = 0
	OpRDMAWriteWithImm  Operation = 1
	OpSend              Operation = 2
	OpSendWithImm       Operation = 3
	OpRDMARead          Operation = 4
	OpAtomicCmpAndSwp   Operation = 5
	OpAtomicFetchAndAdd Operation = 6
	OpLocalInv          Operation = 7
	OpBindMW            Operation = 8
	OpSendWithInv       Operation = 9
	OpTSO               Operation = 10
	OpDriver            Operation = 11
	OpFlush             Operation = 14
	OpAtomicWrite       Operation = 15
	// OpRegMR registers memory, and OpDrain marks the end of what is to drain: of
	// consumers in the kernel alone (IB_WR_REG_MR, ib_drain_qp()).
	OpRegMR   Operation = 28
	OpDrain   Operation = 29
	OpRecv    Operation = 30
	OpUnknown Operation = 31
)

// NumOperations bounds every table indexed by Operation.
const NumOperations = 32

var operationNames = [NumOperations]string{
	OpRDMAWrite:         "rdma_write",
	OpRDMAWriteWithImm:  "rdma_write_with_imm",
	OpSend:              "send",
	OpSendWithImm:       "send_with_imm",
	OpRDMARead:          "rdma_read",
	OpAtomicCmpAndSwp:   "atomic_cmp_and_swp",
	OpAtomicFetchAndAdd: "atomic_fetch_and_add",
	OpLocalInv:          "local_inv",
	OpBindMW:            "bind_mw",
	OpSendWithInv:       "send_with_inv",
	OpTSO:               "tso",
	OpDriver:            "driver",
	OpFlush:             "flush",
	OpAtomicWrite:       "atomic_write",
	OpRegMR:             "reg_mr",
	OpDrain:             "drain",
	OpRecv:              "recv",
}

// String returns the name used as the attribute rdma.operation.name,
// "unknown" for a value outside the table.
func (o Operation) String() string {
	if int(o) < len(operationNames) && operationNames[o] != "" {
		return operationNames[o]
	}
	return "unknown"
}

// Receives reports whether the payload of the operation travels towards this
// host: reads, atomics and receives.
func (o Operation) Receives() bool {
	switch o {
	case OpRDMARead, OpAtomicCmpAndSwp, OpAtomicFetchAndAdd, OpRecv:
		return true
	default:
		return false
	}
}
