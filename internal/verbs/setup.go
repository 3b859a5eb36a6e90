package verbs

import "strconv"

// Setup is what a QP was created for and how far it was brought, as the kernel's
// RDMA core was asked. The zero value means that nothing is known.
type Setup struct {
	// SendLimit and RecvLimit are how many work requests were asked for; the
	// provider may have room for more.
	SendLimit, RecvLimit uint32
	// SignalsAll is sq_sig_all; it means something when HasSignalsAll.
	SignalsAll, HasSignalsAll bool
	// State is the one that was last asked for and reached; it means something
	// when HasState. A QP falls into the error state without being asked to.
	State    QPState
	HasState bool
}

// QPState is enum ib_qp_state of the kernel (include/rdma/ib_verbs.h).
type QPState uint8

var qpStates = [...]string{"reset", "init", "rtr", "rts", "sqd", "sqe", "err"}

// String returns the value of the attribute rdma.qp.state.
func (s QPState) String() string {
	if int(s) < len(qpStates) {
		return qpStates[s]
	}
	return "state_" + strconv.Itoa(int(s))
}
