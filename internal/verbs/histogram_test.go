package verbs_test

import (
	"math/big"
	"sort"
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// exactEdge computes floor(2^(exponent/8)·10⁹) with big numbers: the eighth
// root of 2^exponent·10⁷² is found by bisection.
func exactEdge(exponent int) uint64 {
	eighthPower := new(big.Int).Exp(big.NewInt(10), big.NewInt(72), nil)
	if exponent >= 0 {
		eighthPower.Lsh(eighthPower, uint(exponent))
	} else {
		eighthPower.Rsh(eighthPower, uint(-exponent))
	}
	low, high := uint64(0), uint64(1)<<40
	for low < high {
		middle := (low + high + 1) / 2
		power := new(big.Int).Exp(new(big.Int).SetUint64(middle), big.NewInt(8), nil)
		if power.Cmp(eighthPower) <= 0 {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

func TestHistogramEdgesAreExact(t *testing.T) {
	for i, edge := range verbs.HistogramEdges() {
		if want := exactEdge(verbs.HistogramMin + i + 1); edge != want {
			t.Errorf("edge %d is %d ns, exactly it is %d", i, edge, want)
		}
	}
}

// A duration of exactly an edge belongs to the bucket below it, one more
// nanosecond to the next: (lower, upper].
func TestHistogramEdgesPlusMinusOne(t *testing.T) {
	edges := verbs.HistogramEdges()
	bucket := func(ns uint64) int {
		return sort.Search(len(edges), func(i int) bool { return edges[i] >= ns })
	}
	for i, edge := range edges {
		if got := bucket(edge); got != i {
			t.Errorf("%d ns is in bucket %d, want %d", edge, got, i)
		}
		if got := bucket(edge + 1); got != i+1 {
			t.Errorf("%d ns is in bucket %d, want %d", edge+1, got, i+1)
		}
		if got := bucket(edge - 1); got != i && edges[max(i-1, 0)] < edge-1 {
			t.Errorf("%d ns is in bucket %d, want %d", edge-1, got, i)
		}
	}
}

func TestBalancesAddUp(t *testing.T) {
	wqes := verbs.WQEBalance{
		Posted: 21, Delivered: 5, Retired: 6, Undone: 1, Outstanding: 2,
		Discarded: map[string]uint64{"exit": 3}, Lost: map[string]uint64{"no_memory": 4},
	}
	if n := wqes.Unexplained(); n != 0 {
		t.Errorf("work requests: %d unexplained", n)
	}
	wqes.Lost["completion_missed"] = 2
	if n := wqes.Unexplained(); n != -2 {
		t.Errorf("work requests: %d unexplained, want -2", n)
	}
	completions := verbs.CompletionBalance{
		Seen: 28, Matched: 1, Received: 2, Unsynced: 3, BeforeAttach: 4, Duplicate: 5, Ambiguous: 6, Unmatched: 7,
	}
	if n := completions.Unexplained(); n != 0 {
		t.Errorf("completions: %d unexplained", n)
	}
}

func TestNames(t *testing.T) {
	for status, want := range map[verbs.Status]string{0: "success", 12: "retry_exc_err", 23: "tm_rndv_incomplete", 24: "unknown", 255: "unknown"} {
		if got := status.String(); got != want {
			t.Errorf("status %d is called %q, want %q", status, got, want)
		}
	}
	for operation, want := range map[verbs.Operation]string{0: "rdma_write", 4: "rdma_read", 12: "unknown", 30: "recv", 255: "unknown"} {
		if got := operation.String(); got != want {
			t.Errorf("operation %d is called %q, want %q", operation, got, want)
		}
	}
}
