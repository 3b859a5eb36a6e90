package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Completions with these statuses say that the network or the peer did not answer;
// any other failure is not a matter of time.
const (
	statusRetryExceeded    verbs.Status = 12
	statusRNRRetryExceeded verbs.Status = 13
)

// waits are the slow requests of a burst as the network sees them.
type waits struct {
	// requests are those that succeeded, or failed because nothing was answered.
	requests []*verbs.Completion
	// heads are those of them that did not spend most of their time behind earlier
	// work of their queue: each had something happen to it itself. What happened
	// to a head delays all that is behind it.
	heads []*verbs.Completion
	// delays is, of each head, by how much it was late.
	delays []time.Duration
	// union is for how long something slow was under way.
	union time.Duration
	// inherited is the part of the time that was lost by heads and by what was under way
	// together with them, one request after the other; 1 where there is no head.
	inherited float64
}

func newWaits(b *Burst) waits {
	var w waits
	for i := range b.Slow {
		r := &b.Slow[i]
		if r.Status != verbs.StatusSuccess && r.Status != statusRetryExceeded && r.Status != statusRNRRetryExceeded {
			continue
		}
		w.requests = append(w.requests, r)
		if isHead(r) {
			w.heads = append(w.heads, r)
			w.delays = append(w.delays, b.delay(r))
		}
	}
	w.union = b.underWay(w.requests)
	w.inherited = w.inheritedTime()
	return w
}

// inheritedTime looks at each time in which requests were under way without a pause:
// where there is a head in it, all of them waited for its reason.
func (w *waits) inheritedTime() float64 {
	if len(w.heads) == 0 {
		return 1
	}
	inOrder := slices.SortedFunc(slices.Values(w.requests), func(x, y *verbs.Completion) int { return cmp.Compare(x.Posted, y.Posted) })
	var of, all, period time.Duration
	headed, until := false, uint64(0)
	for _, r := range inOrder {
		if r.Posted > until {
			period, headed = 0, false
		}
		until = max(until, r.Delivered)
		all += r.Excess()
		period += r.Excess()
		if headed = headed || isHead(r); headed {
			of, period = of+period, 0
		}
	}
	return ratio(of, all)
}

// isHead reports whether a request did not spend most of its time behind earlier work.
func isHead(r *verbs.Completion) bool { return 2*queued(r) <= r.Duration() }

// count is how often something has to have happened to explain all of it: once for
// each head. Where all are behind others it is not seen what they wait for, and it
// has to have happened to each.
func (w *waits) count() float64 {
	if len(w.heads) > 0 {
		return float64(len(w.heads))
	}
	return float64(max(len(w.requests), 1))
}

// delay is what a request took beyond what is normal and what the port's work
// explains.
func (b *Burst) delay(r *verbs.Completion) time.Duration {
	normal := time.Duration(0)
	if b.Baseline != nil {
		normal = b.Baseline.Median
	}
	return max(r.Duration()-max(normal, r.Busy), 0)
}

// underWay is for how long at least one of the requests, or something stuck, was
// under way in the window.
func (b *Burst) underWay(requests []*verbs.Completion) time.Duration {
	type interval struct{ from, to uint64 }
	var all []interval
	add := func(from, to uint64) {
		if from, to = max(from, b.Start), min(to, b.End); from < to {
			all = append(all, interval{from, to})
		}
	}
	for _, r := range requests {
		add(r.Posted, r.Delivered)
	}
	for i := range b.Stuck {
		add(b.Stuck[i].Posted, b.End)
	}
	slices.SortFunc(all, func(x, y interval) int { return cmp.Compare(x.from, y.from) })
	var sum, until uint64
	for _, i := range all {
		if i.to > until {
			sum += i.to - max(i.from, until)
			until = i.to
		}
	}
	return time.Duration(sum)
}

// twoSided is the part of the slow and stuck requests that need a receive at the
// peer.
func (b *Burst) twoSided() float64 {
	n, all := 0, len(b.Slow)+len(b.Stuck)
	for i := range b.Slow {
		n += oneIf(needsReceive(b.Slow[i].Operation))
	}
	for i := range b.Stuck {
		n += oneIf(needsReceive(b.Stuck[i].Operation))
	}
	return float64(n) / float64(max(all, 1))
}

func needsReceive(o verbs.Operation) bool {
	switch o {
	case verbs.OpSend, verbs.OpSendWithImm, verbs.OpSendWithInv, verbs.OpRDMAWriteWithImm:
		return true
	default:
		return false
	}
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// incoming is the part of the slow requests whose payload comes to this host.
func (b *Burst) incoming() float64 {
	n := 0
	for i := range b.Slow {
		n += oneIf(b.Slow[i].Operation.Receives())
	}
	return float64(n) / float64(max(len(b.Slow), 1))
}

// meanBytes is the mean payload of the slow requests.
func (b *Burst) meanBytes() float64 {
	var sum uint64
	for i := range b.Slow {
		sum += b.Slow[i].Bytes
	}
	return float64(sum) / float64(max(len(b.Slow), 1))
}

func median(durations []time.Duration) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[len(sorted)/2]
}
