//go:build e2e

package tracer_test

import (
	"fmt"
	"sort"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
	"github.com/rdmaradar/rdmaradar/internal/verbsim"
)

type unitKey struct {
	context uint64
	qp      uint32
	wrID    uint64
}

// begin is when the workload made its first queue: a process that executed
// itself tells of its second half alone.
func begin(truth *verbsim.Truth) uint64 {
	first := ^uint64(0)
	for _, queue := range truth.Queues {
		first = min(first, queue.Created)
	}
	return first
}

// pair is a completion that the tracer measured and what truly happened.
type pair struct {
	seen  *verbs.Completion
	truth *verbsim.Record
}

// late is for how much of its time the completion truly waited for the poller. What
// the workload did between that and reading its clock is not a part of it.
func (p *pair) late() time.Duration {
	waited := max(p.seen.Delivered, p.truth.Due) - p.truth.Due
	return min(time.Duration(waited), p.seen.Duration())
}

// pairs finds the record of every measured completion by the brackets that the
// workload put around its post and its poll. A completion that has none was
// matched wrongly.
func (r *run) pairs() (right []pair, wrong []string) {
	byKey := map[unitKey][]*verbsim.Record{}
	for i := range r.records {
		record := &r.records[i]
		if !record.Recv() {
			key := unitKey{record.Context, record.QPNumber, record.WRID}
			byKey[key] = append(byKey[key], record)
		}
	}
	for _, list := range byKey {
		sort.Slice(list, func(i, j int) bool { return list[i].PollAfter < list[j].PollAfter })
	}
	used := map[*verbsim.Record]bool{}
	longest := longestPoll(r.records)
	from := begin(&r.truth)
	for i := range r.seen {
		c := &r.seen[i]
		if int(c.Queue.Process.TGID) != r.truth.PID || c.Posted < from {
			continue
		}
		record, problem := find(c, byKey[unitKey{c.Queue.Context, c.Queue.QPNumber, c.WRID}], longest, used)
		if record == nil {
			wrong = append(wrong, fmt.Sprintf("qp %#x wr_id %#x %s posted %d delivered %d: %s",
				c.Queue.QPNumber, c.WRID, c.Operation, c.Posted, c.Delivered, problem))
			continue
		}
		used[record] = true
		right = append(right, pair{c, record})
	}
	return right, wrong
}

// find looks for the record of a completion among those with its wr_id, in the
// order of the ends of their polls, of which none took longer than longest.
// Where several fit, it is the one whose post took the shortest: it fits the
// fewest others.
func find(c *verbs.Completion, list []*verbsim.Record, longest uint64, used map[*verbsim.Record]bool) (*verbsim.Record, string) {
	problem := "no completion of that wr_id was polled at that time"
	var best *verbsim.Record
	first := sort.Search(len(list), func(j int) bool { return list[j].PollAfter >= c.Delivered })
	for _, record := range list[first:] {
		if record.PollBefore > c.Delivered+longest {
			break
		}
		if record.PollBefore > c.Delivered || used[record] {
			continue
		}
		if problem = differs(c, record); problem != "" {
			continue
		}
		if best == nil || record.PostAfter-record.PostBefore < best.PostAfter-best.PostBefore {
			best = record
		}
	}
	if best != nil {
		return best, ""
	}
	return nil, problem
}

func longestPoll(records []verbsim.Record) uint64 {
	longest := uint64(0)
	for i := range records {
		longest = max(longest, records[i].PollAfter-records[i].PollBefore)
	}
	return longest
}

func differs(c *verbs.Completion, record *verbsim.Record) string {
	switch {
	case c.Posted < record.PostBefore || c.Posted > record.PostAfter:
		return fmt.Sprintf("it was posted between %d and %d", record.PostBefore, record.PostAfter)
	case uint16(c.Status) != record.Status:
		return fmt.Sprintf("its status was %d, not %d", record.Status, c.Status)
	case uint16(c.Operation) != record.Operation:
		return fmt.Sprintf("its operation was %d, not %d", record.Operation, c.Operation)
	case c.Bytes != record.Bytes:
		return fmt.Sprintf("it had %d bytes, not %d", record.Bytes, c.Bytes)
	case c.Requests != record.Requests:
		return fmt.Sprintf("it had %d requests, not %d", record.Requests, c.Requests)
	}
	var sum time.Duration
	for _, stage := range c.Stages {
		sum += stage
	}
	if sum != c.Duration() {
		return fmt.Sprintf("its stages add up to %v of %v", sum, c.Duration())
	}
	return ""
}

// checkPairs demands that nothing was matched wrongly, and that every matched
// completion was checked or its report counted as dropped.
func (r *run) checkPairs() []pair {
	r.t.Helper()
	right, wrong := r.pairs()
	for i, problem := range wrong {
		if i == 5 {
			r.t.Errorf("and %d more", len(wrong)-i)
			break
		}
		r.t.Errorf("wrong pair: %s", problem)
	}
	dropped := r.lost("ring_buffer_full") + r.lost("consumer_too_slow")
	if total := uint64(len(right)+len(wrong)) + dropped; total != r.matched() && r.truth.Scenario != "fork-exec" {
		r.t.Errorf("%d pairs checked and %d reports dropped, but %d were matched", len(right)+len(wrong), dropped, r.matched())
	}
	r.checkKeys(right)
	r.t.Logf("%d pairs right, %d wrong; %+v; lost %v", len(right), len(wrong), r.completions(), r.losses())
	return right
}

// simulatedKey is the local key of the only region that the workload has of each
// device.
const simulatedKey = 0x100

// checkKeys demands that requests name that region. Through the extended verbs half
// of the data is inline, and names none.
func (r *run) checkKeys(pairs []pair) {
	r.t.Helper()
	keyed, data := 0, 0
	for _, p := range pairs {
		switch key := p.seen.LocalKey; {
		case key == simulatedKey:
			keyed++
		case key != 0:
			r.t.Errorf("a request of %d bytes has the key %#x", p.seen.Bytes, key)
			return
		}
		if p.seen.Bytes > 0 {
			data++
		}
	}
	if keyed < data/3 {
		r.t.Errorf("%d of %d requests with data name their memory", keyed, data)
	}
}

// checkBooks demands that every work request and completion is accounted for,
// by the tracer's own count and by the workload's.
func (r *run) checkBooks() {
	r.t.Helper()
	if n := r.after.WQEs.Unexplained(); n != 0 {
		r.t.Errorf("%d work requests unexplained: %+v", n, r.after.WQEs)
	}
	if n := r.after.Completions.Unexplained(); n != 0 {
		r.t.Errorf("%d completions unexplained: %+v", n, r.after.Completions)
	}
}

// checkCounts compares with the workload's books.
func (r *run) checkCounts() {
	r.t.Helper()
	counts := r.truth.Counts
	for _, n := range []struct {
		what      string
		got, want uint64
	}{
		{"completions seen", r.completions().Seen, counts.Completions + counts.RecvCompletions},
		{"work requests posted", r.after.WQEs.Posted - r.before.WQEs.Posted, counts.Posted},
		{"work requests undone", r.after.WQEs.Undone - r.before.WQEs.Undone, counts.Undone},
		{"rejected posts", r.rejected(), counts.RejectedPosts},
	} {
		if n.got != n.want {
			r.t.Errorf("%d %s, by the workload %d", n.got, n.what, n.want)
		}
	}
}

// rejected is of the run alone. Snapshots cease to list the posts of processes that
// ended, also between those of this run.
func (r *run) rejected() uint64 {
	before := map[verbs.RejectedPosts]uint64{}
	for _, posts := range r.before.Rejected {
		n := posts.Count
		posts.Count = 0
		before[posts] = n
	}
	sum := uint64(0)
	for _, posts := range r.after.Rejected {
		n := posts.Count
		posts.Count = 0
		sum += n - before[posts]
	}
	return sum
}

func (r *run) completions() verbs.CompletionBalance {
	a, b := r.after.Completions, r.before.Completions
	return verbs.CompletionBalance{
		Seen: a.Seen - b.Seen, Matched: a.Matched - b.Matched, Received: a.Received - b.Received,
		Unsynced: a.Unsynced - b.Unsynced, BeforeAttach: a.BeforeAttach - b.BeforeAttach,
		Duplicate: a.Duplicate - b.Duplicate, Ambiguous: a.Ambiguous - b.Ambiguous,
		Unmatched: a.Unmatched - b.Unmatched,
	}
}

func (r *run) matched() uint64 { return r.completions().Matched }

func (r *run) lost(reason string) uint64 { return r.after.Losses[reason] - r.before.Losses[reason] }

func (r *run) losses() map[string]uint64 {
	losses := map[string]uint64{}
	for reason := range r.after.Losses {
		if n := r.lost(reason); n != 0 {
			losses[reason] = n
		}
	}
	return losses
}

// series sums the aggregates of the workload's process.
func (r *run) series(add func(*verbs.Series)) {
	for i := range r.after.Series {
		if s := &r.after.Series[i]; int(s.Key.Process.TGID) == r.truth.PID {
			add(s)
		}
	}
}
