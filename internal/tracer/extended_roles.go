package tracer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// part is one function of an object of the extended verbs: what a probe on it
// does, by the index of its pointer.
type part struct {
	index     int
	role      bpf.TrackerExtendedRole
	operation uint8
	// needed says that an object without it is none, optional that older
	// versions of the structure have something else in its place.
	needed, optional bool
}

// Work request opcodes, enum ibv_wr_opcode of infiniband/verbs.h.
const (
	wrRDMAWrite, wrRDMAWriteImm, wrSend, wrSendImm, wrRDMARead = 0, 1, 2, 3, 4
	wrAtomicCmpSwp, wrAtomicFetchAdd, wrLocalInv, wrBindMW     = 5, 6, 7, 8
	wrSendInv, wrTSO, wrFlush, wrAtomicWrite                   = 9, 10, 14, 15
)

func builder(index bpf.TrackerQpFunction, operation uint8) part {
	return part{index: int(index), role: bpf.TrackerExtendedRoleROLE_BUILD, operation: operation}
}

// qpParts are the functions of ibv_qp_ex that are probed, in the order in which
// probes are attached: what ends a chain first, so that none looks endless.
var qpParts = []part{
	{index: int(bpf.TrackerQpFunctionQP_COMPLETE), role: bpf.TrackerExtendedRoleROLE_COMPLETE, needed: true},
	{index: int(bpf.TrackerQpFunctionQP_ABORT), role: bpf.TrackerExtendedRoleROLE_ABORT, needed: true},
	{index: int(bpf.TrackerQpFunctionQP_SET_SGE), role: bpf.TrackerExtendedRoleROLE_SET_SGE},
	{index: int(bpf.TrackerQpFunctionQP_SET_SGE_LIST), role: bpf.TrackerExtendedRoleROLE_SET_SGE_LIST},
	{index: int(bpf.TrackerQpFunctionQP_SET_INLINE_DATA), role: bpf.TrackerExtendedRoleROLE_SET_INLINE_DATA},
	{index: int(bpf.TrackerQpFunctionQP_SET_INLINE_DATA_LIST), role: bpf.TrackerExtendedRoleROLE_SET_INLINE_DATA_LIST},
	builder(bpf.TrackerQpFunctionQP_ATOMIC_CMP_SWP, wrAtomicCmpSwp),
	builder(bpf.TrackerQpFunctionQP_ATOMIC_FETCH_ADD, wrAtomicFetchAdd),
	builder(bpf.TrackerQpFunctionQP_BIND_MW, wrBindMW),
	builder(bpf.TrackerQpFunctionQP_LOCAL_INV, wrLocalInv),
	builder(bpf.TrackerQpFunctionQP_RDMA_READ, wrRDMARead),
	builder(bpf.TrackerQpFunctionQP_RDMA_WRITE, wrRDMAWrite),
	builder(bpf.TrackerQpFunctionQP_RDMA_WRITE_IMM, wrRDMAWriteImm),
	builder(bpf.TrackerQpFunctionQP_SEND, wrSend),
	builder(bpf.TrackerQpFunctionQP_SEND_IMM, wrSendImm),
	builder(bpf.TrackerQpFunctionQP_SEND_INV, wrSendInv),
	builder(bpf.TrackerQpFunctionQP_SEND_TSO, wrTSO),
	{index: int(bpf.TrackerQpFunctionQP_ATOMIC_WRITE), role: bpf.TrackerExtendedRoleROLE_BUILD, operation: wrAtomicWrite, optional: true},
	{index: int(bpf.TrackerQpFunctionQP_FLUSH), role: bpf.TrackerExtendedRoleROLE_BUILD, operation: wrFlush, optional: true},
	{index: int(bpf.TrackerQpFunctionQP_START), role: bpf.TrackerExtendedRoleROLE_START, needed: true},
}

// cqParts are those of ibv_cq_ex.
var cqParts = []part{
	{index: int(bpf.TrackerCqFunctionCQ_NEXT_POLL), role: bpf.TrackerExtendedRoleROLE_NEXT_POLL, needed: true},
	{index: int(bpf.TrackerCqFunctionCQ_END_POLL), role: bpf.TrackerExtendedRoleROLE_END_POLL, needed: true},
}

func partsOf(kind uint32) ([]part, error) {
	switch bpf.TrackerExtendedKind(kind) {
	case bpf.TrackerExtendedKindEXTENDED_QP:
		return qpParts, nil
	case bpf.TrackerExtendedKindEXTENDED_CQ:
		return cqParts, nil
	default:
		return nil, fmt.Errorf("an object of unknown kind %d", kind)
	}
}

// roleKey is what a probe does, as in the upper half of its cookie:
// bpf/extended_types.h.
type roleKey uint64

func (p part) key() roleKey {
	return roleKey(p.role) | roleKey(p.operation)<<8 | roleKey(p.index)<<16
}

// cookie is that of a probe so many bytes into the function, less than 256.
func (k roleKey) cookie(library uint32, into uint64) uint64 {
	return into<<56 | uint64(k)<<32 | uint64(library)
}

func (k roleKey) role() bpf.TrackerExtendedRole { return bpf.TrackerExtendedRole(k & 0xff) }

// programsOf lists the programs on a function with this role, the return first.
func programsOf(role bpf.TrackerExtendedRole) []extendedProgram {
	switch role {
	case bpf.TrackerExtendedRoleROLE_COMPLETE:
		return []extendedProgram{{bpf.TrackerProgLeaveWrComplete, true}, {bpf.TrackerProgEnterWrComplete, false}}
	case bpf.TrackerExtendedRoleROLE_NEXT_POLL:
		return []extendedProgram{{bpf.TrackerProgLeaveNextPoll, true}, {bpf.TrackerProgEnterExtendedPoll, false}}
	case bpf.TrackerExtendedRoleROLE_END_POLL:
		return []extendedProgram{{bpf.TrackerProgEnterExtendedPoll, false}}
	default:
		return []extendedProgram{{bpf.TrackerProgEnterExtendedPost, false}}
	}
}

type extendedProgram struct {
	name     string
	isReturn bool
}

// objects names the kinds of objects whose functions are probed.
func (l *extendedLibrary) objects() []string {
	if l == nil {
		return nil
	}
	kinds := map[string]bool{}
	for probed := range l.probed {
		switch probed.key.role() {
		case bpf.TrackerExtendedRoleROLE_NEXT_POLL, bpf.TrackerExtendedRoleROLE_END_POLL:
			kinds["ibv_cq_ex"] = true
		default:
			kinds["ibv_qp_ex"] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}
