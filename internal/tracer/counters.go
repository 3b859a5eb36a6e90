package tracer

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// lostRequests names the reasons for which a work request was lost.
var lostRequests = map[bpf.TrackerCounter]string{
	bpf.TrackerCounterLOST_UNTRACKED:      "untracked_queue",
	bpf.TrackerCounterLOST_SKIPPED:        "completion_missed",
	bpf.TrackerCounterLOST_CHAIN_TOO_DEEP: "chain_too_deep",
	bpf.TrackerCounterLOST_QUEUE_TOO_DEEP: "queue_too_deep",
	bpf.TrackerCounterLOST_NO_SEGMENT:     "no_memory",
	bpf.TrackerCounterLOST_READ_WR:        "unreadable_request",
	bpf.TrackerCounterLOST_RESYNC:         "resync",
}

// lostUnobserved is the reason of work requests that were outstanding when their
// library ceased to be observed. User space counts them.
const lostUnobserved = "window_end"

// otherLosses names what else could not be followed, and why.
var otherLosses = map[bpf.TrackerCounter]string{
	bpf.TrackerCounterLOSS_READ_QP:              "unreadable_qp",
	bpf.TrackerCounterLOSS_READ_WC:              "unreadable_completion",
	bpf.TrackerCounterLOSS_READ_CQ:              "unreadable_cq",
	bpf.TrackerCounterLOSS_BATCH_TOO_DEEP:       "batch_too_deep",
	bpf.TrackerCounterLOSS_SGE_TOO_DEEP:         "scatter_list_too_deep",
	bpf.TrackerCounterLOSS_READ_SGE:             "unreadable_scatter_list",
	bpf.TrackerCounterLOSS_EVENT_DROPPED:        "ring_buffer_full",
	bpf.TrackerCounterLOSS_CONTROL_DROPPED:      "control_ring_buffer_full",
	bpf.TrackerCounterLOSS_NO_THREAD_STATE:      "no_thread_state",
	bpf.TrackerCounterLOSS_NESTED_CALL:          "nested_call",
	bpf.TrackerCounterLOSS_RETURN_WITHOUT_ENTRY: "return_without_entry",
	bpf.TrackerCounterLOSS_CQ_MAP_FULL:          "cq_map_full",
	bpf.TrackerCounterLOSS_SERIES_FULL:          "series_map_full",
	bpf.TrackerCounterLOSS_REJECTED_FULL:        "rejected_map_full",
	bpf.TrackerCounterLOSS_DEVICES_FULL:         "device_map_full",
	bpf.TrackerCounterLOSS_PROCESSES_FULL:       "process_map_full",
	bpf.TrackerCounterLOSS_BAD_WR:               "bad_wr_not_found",
	bpf.TrackerCounterLOSS_RECEIVE_CHAIN:        "receive_chain_not_followed",
	bpf.TrackerCounterLOSS_FAILED_POLL:          "failed_poll",
	bpf.TrackerCounterLOSS_SEARCH_TOO_LONG:      "search_too_long",
	bpf.TrackerCounterLOSS_QUEUE_BROKEN:         "queue_broken",
	bpf.TrackerCounterLOSS_CHAIN_NOT_BEGUN:      "chain_not_begun",
	bpf.TrackerCounterLOSS_FUNCTIONS_FULL:       "function_map_full",
	bpf.TrackerCounterLOSS_READ_CQE:             "unreadable_cqe",
	bpf.TrackerCounterLOSS_CQE_SAMPLES:          "cqe_sample_ring_buffer_full",
	bpf.TrackerCounterLOSS_SCHEDULES_FULL:       "schedule_map_full",
	bpf.TrackerCounterLOSS_QP_NUMBER:            "unknown_qp_number",
	bpf.TrackerCounterLOSS_CONTENDED:            "contended",
	bpf.TrackerCounterLOSS_CONSUMERS_FULL:       "consumer_map_full",
	bpf.TrackerCounterLOSS_ENTRY_NOT_SEEN:       "entry_not_seen",
	bpf.TrackerCounterLOSS_BASELINES_FULL:       "baseline_map_full",
	bpf.TrackerCounterDUPLICATE_HITS:            "duplicate_probe",
	bpf.TrackerCounterSLOW_USUAL:                "usual_for_its_kind",
	bpf.TrackerCounterSLOW_BELOW_FLOOR:          "below_reporting_floor",
}

// readCounters sums the counters of all CPUs.
func (k *kernelSide) readCounters() ([bpf.TrackerCounterCOUNTERS]uint64, error) {
	var sums [bpf.TrackerCounterCOUNTERS]uint64
	for i := range sums {
		var perCPU []uint64
		if err := k.maps.Counters.Lookup(uint32(i), &perCPU); err != nil {
			return sums, fmt.Errorf("reading counter %d: %w", i, err)
		}
		for _, n := range perCPU {
			sums[i] += n
		}
	}
	return sums, nil
}

func completionBalance(counters *[bpf.TrackerCounterCOUNTERS]uint64) verbs.CompletionBalance {
	return verbs.CompletionBalance{
		Seen:         counters[bpf.TrackerCounterCOMPLETIONS_SEEN],
		Matched:      counters[bpf.TrackerCounterCOMPLETIONS_MATCHED],
		Received:     counters[bpf.TrackerCounterCOMPLETIONS_RECEIVED],
		Unsynced:     counters[bpf.TrackerCounterCOMPLETIONS_UNSYNCED],
		BeforeAttach: counters[bpf.TrackerCounterCOMPLETIONS_BEFORE_ATTACH],
		Duplicate:    counters[bpf.TrackerCounterCOMPLETIONS_DUPLICATE],
		Ambiguous:    counters[bpf.TrackerCounterCOMPLETIONS_AMBIGUOUS],
		Unmatched:    counters[bpf.TrackerCounterCOMPLETIONS_UNMATCHED],
	}
}

// clearCounters begins to count anew on all CPUs.
func (k *kernelSide) clearCounters() error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("clearing the counters: %w", err)
	}
	for i := range uint32(bpf.TrackerCounterCOUNTERS) {
		if err := k.maps.Counters.Put(i, make([]uint64, cpus)); err != nil {
			return fmt.Errorf("clearing counter %d: %w", i, err)
		}
	}
	return nil
}
