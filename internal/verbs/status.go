package verbs

// Status is the outcome of a completion, the values of enum ibv_wc_status
// (infiniband/verbs.h).
type Status uint8

// StatusSuccess is the only status that is not an error.
const StatusSuccess Status = 0

// StatusWRFlushErr is what every outstanding request of a QP in the error
// state completes with.
const StatusWRFlushErr Status = 5

// NumStatuses is the number of statuses libibverbs defines.
const NumStatuses = 24

var statusNames = [NumStatuses]string{
	"success", "loc_len_err", "loc_qp_op_err", "loc_eec_op_err",
	"loc_prot_err", "wr_flush_err", "mw_bind_err", "bad_resp_err",
	"loc_access_err", "rem_inv_req_err", "rem_access_err", "rem_op_err",
	"retry_exc_err", "rnr_retry_exc_err", "loc_rdd_viol_err",
	"rem_inv_rd_req_err", "rem_abort_err", "inv_eecn_err",
	"inv_eec_state_err", "fatal_err", "resp_timeout_err", "general_err",
	"tm_err", "tm_rndv_incomplete",
}

// String returns the name used as the attributes rdma.wc.status and
// error.type, "unknown" for a value libibverbs does not define.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown"
}
