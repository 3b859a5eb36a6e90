package tracer

import (
	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// The bits of kernel_qp.known, as in bpf/resource_types.h.
const (
	qpKnowsCreation = 1 << iota
	qpKnowsVector
	qpKnowsRemoteGID
	qpKnowsRetry
	qpKnowsRNRRetry
	qpKnowsTimeout
	qpKnowsMinRNRTimer
	qpKnowsState
)

func setupOf(qp *bpf.ResourcesKernelQp) verbs.Setup {
	var s verbs.Setup
	if qp.Known&qpKnowsCreation != 0 {
		s.SendLimit, s.RecvLimit = qp.MaxSendWr, qp.MaxRecvWr
		s.SignalsAll, s.HasSignalsAll = qp.SignalsAll != 0, true
	}
	if qp.Known&qpKnowsState != 0 {
		s.State, s.HasState = verbs.QPState(qp.State), true
	}
	return s
}

func pathOf(qp *bpf.ResourcesKernelQp) verbs.Path {
	p := verbs.Path{
		LocalGID:         qp.LocalGid,
		GIDType:          verbs.GIDType(qp.GidType),
		RemoteLID:        qp.RemoteLid,
		MTU:              verbs.MTU(qp.PathMtu),
		RetryCount:       qp.RetryCnt,
		RNRRetryCount:    qp.RnrRetry,
		HasRetryCount:    qp.Known&qpKnowsRetry != 0,
		HasRNRRetryCount: qp.Known&qpKnowsRNRRetry != 0,
		ServiceLevel:     qp.ServiceLevel,
		TrafficClass:     qp.TrafficClass,
		HasClass:         qp.Known&qpKnowsVector != 0,
	}
	if qp.Known&qpKnowsRemoteGID != 0 {
		p.RemoteGID = qp.RemoteGid
	}
	if qp.Known&qpKnowsTimeout != 0 {
		p.AckTimeout = verbs.AckTimeout(qp.Timeout)
	}
	if qp.Known&qpKnowsMinRNRTimer != 0 {
		p.MinRNRTimer = verbs.RNRTimer(qp.MinRnrTimer)
	}
	return p
}

// findCQ finds a CQ of the QP by its address in the process.
func findCQ(qp *bpf.ResourcesKernelQp, address uint64) (cq bpf.ResourcesKernelCq, ok bool) {
	switch {
	case address == 0:
		return cq, false
	case address == qp.SendCq.UserHandle:
		return qp.SendCq, true
	case address == qp.RecvCq.UserHandle:
		return qp.RecvCq, true
	default:
		return cq, false
	}
}

// sizeOfCQ is how many completions a CQ of the QP holds, by its number; 0 when it
// is not one of the QP's.
func sizeOfCQ(qp *bpf.ResourcesKernelQp, number uint32) uint32 {
	switch number {
	case qp.SendCq.Number:
		return qp.SendCq.Cqe
	case qp.RecvCq.Number:
		return qp.RecvCq.Cqe
	default:
		return 0
	}
}

// describe adds what the kernel knows of a request, its queue and its memory.
func (t *Tracer) describe(wr *verbs.WorkRequest) {
	if wr.Queue.Process.InKernel() {
		describeConsumer(wr)
	}
	if qp, ok := t.resources.find(wr.Queue, wr.Device); ok {
		describeRequest(wr, &qp)
	}
	wr.Memory = t.resources.memoryOf(wr.Queue.Process, wr.Device, wr.LocalKey, wr.Posted)
}

// What libibverbs told of a QP came with the request, what the kernel knows with
// its success, so the kernel's word counts where both are there.

func describeRequest(wr *verbs.WorkRequest, qp *bpf.ResourcesKernelQp) {
	wr.Setup, wr.Path = setupOf(qp), pathOf(qp)
	if wr.Queue.Process.InKernel() {
		wr.CQSize = sizeOfCQ(qp, wr.CQNumber)
	} else if cq, ok := findCQ(qp, wr.CQ); ok {
		wr.CQNumber, wr.HasCQNumber, wr.CQSize = cq.Number, true, cq.Cqe
	}
	overrule(&wr.RemoteQP, qp.RemoteQp)
	overrule(&wr.Port, qp.Port)
	overrule(&wr.QPType, verbs.QPType(qp.Type))
}

func describeQueue(q *verbs.QueueInfo, qp *bpf.ResourcesKernelQp) {
	q.Path = pathOf(qp)
	overrule(&q.RemoteQP, qp.RemoteQp)
	overrule(&q.Port, qp.Port)
	overrule(&q.Type, verbs.QPType(qp.Type))
	// What was asked for: there may be room for more, and is if there was.
	if q.Limit == 0 && qp.Known&qpKnowsCreation != 0 {
		q.Limit = max(qp.MaxSendWr, q.Peak)
	}
}

// overrule leaves a value as it is when the other one is not known.
func overrule[T ~uint8 | ~uint32](value *T, by T) {
	if by != 0 {
		*value = by
	}
}
