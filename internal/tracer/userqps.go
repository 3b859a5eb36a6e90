package tracer

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// userQP is a QP that a process made, as the kernel knows it.
type userQP struct {
	process verbs.ProcessID
	device  string
	number  uint32
	// handle is the address of its ibv_qp in the process, sendCQ that of the
	// ibv_cq it completes to.
	handle, sendCQ uint64
}

// taken counts the QPs that were taken up since the RDMA core is probed: as long
// as it stands still there are no new ones.
func (r *resources) taken() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.side == nil {
		return 0
	}
	return r.side.read(bpf.ResourcesVarKernelQpsTaken)
}

// userQPs lists the QPs of processes that live. complete is false where others
// came or went meanwhile and some may be missing.
func (r *resources) userQPs() (qps []userQP, complete bool, err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.side == nil {
		return nil, true, nil
	}
	return r.side.userQPs()
}

func (s *coreSide) userQPs() (qps []userQP, complete bool, err error) {
	var devices []uint32
	var key bpf.ResourcesKernelQpKey
	var qp bpf.ResourcesKernelQp
	entries := s.collection.Maps[bpf.ResourcesMapKernelQps].Iterate()
	for entries.Next(&key, &qp) {
		if qp.UserHandle == 0 || qp.Tgid == 0 || qp.EndedNs != 0 {
			continue
		}
		devices = append(devices, key.Device)
		qps = append(qps, userQP{
			process: verbs.ProcessID{TGID: qp.Tgid, Incarnation: qp.Incarnation},
			number:  key.QpNum, handle: qp.UserHandle, sendCQ: qp.SendCq.UserHandle,
		})
	}
	err = entries.Err()
	if err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return nil, false, fmt.Errorf("reading %s: %w", bpf.ResourcesMapKernelQps, err)
	}
	// A device has its name before its first QP is there.
	names := s.deviceNames()
	for i, device := range devices {
		qps[i].device = names[device]
	}
	return qps, err == nil, nil
}
