package rdmareceiver

import (
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// maxTallies is how many seconds of what is counted by process are kept.
	maxTallies = 16
	// glanceDelay is how long after the end of a window the queues may be looked at.
	glanceDelay = 250 * time.Millisecond
	// maxPollers bounds the Completion Queues of which the polling thread is known.
	maxPollers = 4096
)

// queueTally is what is remembered of a queue until the next glance.
type queueTally struct {
	generation, bytes, slow uint64
	// timed counts completions; it wraps.
	timed uint32
	base  *diagnose.Baseline
}

// processTally is what is counted by process and device.
type processTally struct {
	rejected, refused    uint64
	empty                uint64
	registered, regBytes uint64
	regTime              time.Duration
}

// tallies are those of all processes at a moment.
type tallies struct {
	at uint64
	of map[counterKey]processTally
}

// cqKey names a Completion Queue.
type cqKey struct {
	process verbs.ProcessID
	cq      uint64
}

// glances remembers what the queues did. It is not safe for concurrent use.
type glances struct {
	now    *verbs.Snapshot
	queues map[verbs.QueueID]queueTally
	// before is what queues was at the glance before.
	before map[verbs.QueueID]queueTally
	// recent has the tallies of processes, the oldest first.
	recent []tallies
	// pollers are the threads that were last seen to poll Completion Queues.
	pollers map[cqKey]uint32
	// places are where in now a queue is, and sums what those of a kind did: both are
	// made when they are asked for, and nil before.
	places map[verbs.QueueID]int
	sums   map[neighbourhood]activity
}

// add takes the next glance.
func (g *glances) add(snap *verbs.Snapshot) {
	g.before, g.now = g.queues, snap
	g.places, g.sums = nil, nil
	g.queues = make(map[verbs.QueueID]queueTally, len(snap.Queues))
	for i := range snap.Queues {
		q := &snap.Queues[i]
		g.queues[q.ID] = tallyOf(q)
		if q.Poller != 0 {
			g.polls(cqKey{q.ID.Process, q.SendCQ}, q.Poller)
		}
	}
	if len(g.recent) == maxTallies {
		g.recent = slices.Delete(g.recent, 0, 1)
	}
	g.recent = append(g.recent, talliesOf(snap))
}

// skip is for a glance that failed: nothing is known of the window.
func (g *glances) skip() { g.now, g.queues, g.places, g.sums = nil, nil, nil, nil }

func tallyOf(q *verbs.QueueInfo) queueTally {
	t := queueTally{generation: q.Traffic.Generation, bytes: q.Traffic.Bytes, slow: q.Traffic.Slow}
	for _, n := range q.Traffic.Durations {
		t.timed += n
	}
	t.base = baselineOf(q)
	return t
}

func talliesOf(snap *verbs.Snapshot) tallies {
	t := tallies{at: snap.Monotonic, of: map[counterKey]processTally{}}
	change := func(process verbs.ProcessID, device string, f func(*processTally)) {
		key := counterKey{process, device}
		tally := t.of[key]
		f(&tally)
		t.of[key] = tally
	}
	for i := range snap.Rejected {
		switch r := &snap.Rejected[i]; r.Errno {
		case enomem:
			change(r.Process, r.Device, func(t *processTally) { t.rejected += r.Count })
		case 0:
			change(r.Process, r.Device, func(t *processTally) { t.refused += r.Count })
		}
	}
	for i := range snap.Empty {
		e := &snap.Empty[i]
		change(e.Process, e.Device, func(t *processTally) { t.empty += e.Count })
	}
	for i := range snap.Registrations {
		r := &snap.Registrations[i]
		change(r.Process, r.Device, func(t *processTally) {
			t.registered += r.Count
			t.regBytes += r.Bytes
			t.regTime += r.Time + r.DeregistrationTime
		})
	}
	return t
}

// enomem is the error number with which a provider says that the Send Queue is
// full.
const enomem = 12

// grew is what a process counted since the last glance before a moment, or since
// the oldest one that is known. It is nothing when that is not known.
func (g *glances) grew(key counterKey, since uint64) processTally {
	if g.now == nil {
		return processTally{}
	}
	last := g.recent[len(g.recent)-1]
	first := g.recent[0]
	for _, t := range g.recent[:len(g.recent)-1] {
		if t.at <= since+uint64(glanceDelay) {
			first = t
		}
	}
	a, b := first.of[key], last.of[key]
	if b.rejected < a.rejected || b.refused < a.refused || b.empty < a.empty || b.registered < a.registered {
		return processTally{}
	}
	return processTally{
		rejected: b.rejected - a.rejected, refused: b.refused - a.refused, empty: b.empty - a.empty,
		registered: b.registered - a.registered, regBytes: b.regBytes - a.regBytes, regTime: b.regTime - a.regTime,
	}
}

// did says whether a queue completed something since the glance before, and
// whether something of that was slow. Without that glance it is not known.
func (g *glances) did(id verbs.QueueID) (active, slow bool) {
	if g.before == nil {
		return false, false
	}
	now, before := g.queues[id], g.before[id]
	if now.generation != before.generation {
		before = queueTally{}
	}
	return now.timed != before.timed || now.bytes != before.bytes, now.slow != before.slow
}

// queue is the state of a queue, nil when it is not known.
func (g *glances) queue(id verbs.QueueID) *verbs.QueueInfo {
	if g.now == nil {
		return nil
	}
	if g.places == nil {
		g.places = make(map[verbs.QueueID]int, len(g.now.Queues))
		for i := range g.now.Queues {
			g.places[g.now.Queues[i].ID] = i
		}
	}
	if i, ok := g.places[id]; ok {
		return &g.now.Queues[i]
	}
	return nil
}

// baseline is what was normal on a queue before the window.
func (g *glances) baseline(id verbs.QueueID) *diagnose.Baseline {
	now, before := g.queues[id], g.before[id]
	if now.generation != before.generation {
		return nil
	}
	return before.base
}

// seen notes which thread polls a Completion Queue.
func (g *glances) seen(c *verbs.Completion) {
	if c.Poller.TID != 0 && c.CQ != 0 {
		g.polls(cqKey{c.Queue.Process, c.CQ}, c.Poller.TID)
	}
}

func (g *glances) polls(of cqKey, tid uint32) {
	if g.pollers == nil || len(g.pollers) >= maxPollers {
		g.pollers = map[cqKey]uint32{}
	}
	g.pollers[of] = tid
	g.sums = nil
}

// onlyPoller is the thread that polls for all queues of a process on a device of
// which that is known, 0 when there are several or none.
func (g *glances) onlyPoller(of counterKey) (only uint32) {
	for i := range g.now.Queues {
		q := &g.now.Queues[i]
		if q.ID.Process != of.process || q.Device != of.device {
			continue
		}
		switch tid := g.pollers[cqKey{of.process, q.SendCQ}]; {
		case tid == 0 || tid == only:
		case only != 0:
			return 0
		default:
			only = tid
		}
	}
	return only
}

// completed counts what a queue completed since the glance before; ok is false when
// that is not known.
func (g *glances) completed(id verbs.QueueID) (n uint64, ok bool) {
	now, ok := g.queues[id]
	if !ok || g.before == nil {
		return 0, false
	}
	before := g.before[id]
	if now.generation != before.generation {
		before = queueTally{}
	}
	return uint64(now.timed - before.timed), true
}
