package incident

import (
	"cmp"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Incident is what is slow for one cause, on one device. In a [Record] it is as it
// was at that moment.
type Incident struct {
	// ID names the incident in all records of it.
	ID     string
	Device string
	// Port is that of the burst that Verdict is of, 0 when it is not known.
	Port uint8
	// Process is set where the cause is one that happens in one process.
	Process verbs.ProcessID
	// Verdict is that of the burst that is clearest: the surest, of equals the one that
	// lost most time. Clearest is the longest duration in it.
	Verdict  diagnose.Verdict
	Clearest time.Duration
	// Bursts counts those in which something was slow.
	Bursts uint64
	// First and Last are when the first request was posted and the last one was
	// delivered or looked at, on CLOCK_MONOTONIC in nanoseconds.
	First, Last uint64
	// Slow counts completions, Excess is the time that they lost. Worst is the
	// longest of them, on the queue pair WorstQueue, and Normal what is normal
	// there, 0 when that is not known.
	Slow          uint64
	Excess        time.Duration
	Worst, Normal time.Duration
	WorstQueue    verbs.QueueID
	// Stuck counts sends that did not complete, Oldest is the age of the oldest.
	Stuck  uint64
	Oldest time.Duration
	// Idle is the longest silence.
	Idle time.Duration
	// WorstQueues are the few queue pairs on which something took longest, the worst
	// first.
	WorstQueues []verbs.QueueID
	// Queues, Processes, Names and Ranks are those that were hit.
	Queues    List[verbs.QueueID]
	Processes List[verbs.ProcessID]
	Names     List[string]
	Ranks     List[int]
	// Unranked counts those of Processes that have no rank, at most about a thousand.
	Unranked int
	// Spans are the worst ones that were exported, the worst first.
	Spans []Span

	// folded is when something was last folded in.
	folded uint64
}

// WorstSpan is the worst span that was exported; ok is false when none was.
func (i *Incident) WorstSpan() (worst Span, ok bool) {
	if len(i.Spans) == 0 {
		return Span{}, false
	}
	return i.Spans[0], true
}

// entry is an incident that is open.
type entry struct {
	Incident
	// weight is how bad the burst was that Verdict is of.
	weight time.Duration
	worst  worst
	// unranked are the processes of which no rank is known.
	unranked map[verbs.ProcessID]bool
	// opened and told are when it was opened and when it was last told of.
	opened, told uint64
	announced    bool
	// gathered is what speaks for it, until it is announced.
	gathered gathered
	// grew is set when there is something new, turned when that cannot wait.
	grew, turned bool
}

func (e *entry) add(now uint64, r *Report) {
	first := e.folded == 0
	changed := e.take(r)
	e.turned = e.turned || changed
	e.gathered.add(r, e.folded == now)
	e.folded, e.grew = now, true
	e.Last = max(e.Last, r.Last)
	if first || r.First < e.First {
		e.First = r.First
	}
	e.count(r)
	e.list(r)
	e.addSpans(r.Spans)
}

func (e *entry) count(r *Report) {
	e.Slow += r.Slow
	if r.Slow > 0 {
		e.Bursts++
	}
	e.Excess += r.Excess
	e.Stuck += r.Stuck
	e.Oldest = max(e.Oldest, r.Oldest)
	e.Idle = max(e.Idle, r.Idle)
	if r.hasQueue() && (r.Worst > e.Worst || e.WorstQueue == verbs.QueueID{}) {
		e.Worst, e.Normal, e.WorstQueue = r.Worst, r.Normal, r.Queue
	}
}

func (e *entry) list(r *Report) {
	if r.hasQueue() {
		e.Queues.add(r.Queue)
		e.worst.add(r.Queue, max(r.Worst, r.Oldest))
	}
	if r.Queue.Process != (verbs.ProcessID{}) {
		e.listProcess(r.Queue.Process, r.Rank != nil)
	}
	if r.Name != "" {
		e.Names.add(r.Name)
	}
	if r.Rank != nil {
		e.Ranks.add(*r.Rank)
	}
}

// listProcess lists a process. Its rank may be known only later.
func (e *entry) listProcess(id verbs.ProcessID, ranked bool) {
	added := e.Processes.add(id)
	switch {
	case ranked:
		delete(e.unranked, id)
	case added && e.unranked == nil:
		e.unranked = map[verbs.ProcessID]bool{id: true}
	case added:
		e.unranked[id] = true
	}
}

func (e *entry) addSpans(spans []Span) {
	e.Spans = append(e.Spans, spans...)
	slices.SortStableFunc(e.Spans, func(a, b Span) int { return cmp.Compare(b.Duration, a.Duration) })
	e.Spans = e.Spans[:min(len(e.Spans), maxSpans)]
}

// now returns the incident as it is at this moment.
func (e *entry) now() Incident {
	i := e.Incident
	i.Queues, i.Processes, i.Names, i.Ranks = e.Queues.copied(), e.Processes.copied(), e.Names.copied(), e.Ranks.copied()
	i.Spans, i.WorstQueues, i.Unranked = slices.Clone(e.Spans), e.worst.queues(), len(e.unranked)
	return i
}
