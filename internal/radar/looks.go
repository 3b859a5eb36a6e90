package radar

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// markEvery is how often the queues are remembered, so that quantiles are those of
// the last one to two such times.
const markEvery = time.Minute

// look is the state of the queues at a moment.
type look struct {
	at     int64
	queues []verbs.QueueInfo
	// nodes are the NUMA nodes of the threads that poll.
	nodes map[uint32]int
}

// looks are the last looks at the queues. What a look has does not change any more.
type looks struct {
	// now and before are the last two.
	now, before *look
	// mark is a look of one to two minutes ago, next of up to one minute ago.
	mark, next *look
	heatmap    heatmap
}

// add takes a look, and reports whether the wall clock was set back since the last.
func (l *looks) add(at time.Time, snap *verbs.Snapshot, nodes map[uint32]int) (setBack bool) {
	now := &look{at: at.UnixMilli(), queues: snap.Queues, nodes: nodes}
	setBack = l.now != nil && now.at < l.now.at
	if setBack {
		l.stepBack(now.at)
	}
	switch {
	case l.now == nil:
		l.mark, l.next = now, now
	case now.at > l.now.at:
		l.heatmap.add(columnOf(l.now, now))
	}
	if now.at-l.next.at >= markEvery.Milliseconds() {
		l.mark, l.next = l.next, now
	}
	l.before, l.now = l.now, now
	return setBack
}

// stepBack is for a wall clock that was set back to a moment: what was seen before
// counts as seen then, and columns that are still to come would be told again and
// again.
func (l *looks) stepBack(to int64) {
	was := *l.now
	was.at = to
	l.now, l.mark, l.next = &was, &was, &was
	l.heatmap.forgetAfter(to)
}

func (l *looks) table() tableOf { return tableOf{now: l.now, before: l.before, mark: l.mark} }

// finder finds the queues of a look. Most are at the place at which they are in the
// next one.
type finder struct {
	queues []verbs.QueueInfo
	index  map[verbs.QueueID]int
}

// find returns the traffic that a queue had; one with no counts if it was not there,
// or was another queue of the same name.
func (f *finder) find(place int, q *verbs.QueueInfo) *verbs.Traffic {
	if place >= len(f.queues) || f.queues[place].ID != q.ID {
		place = f.place(q.ID)
	}
	if place < 0 || f.queues[place].Traffic.Generation != q.Traffic.Generation {
		return &verbs.Traffic{}
	}
	return &f.queues[place].Traffic
}

func (f *finder) place(id verbs.QueueID) int {
	if f.index == nil {
		f.index = make(map[verbs.QueueID]int, len(f.queues))
		for i := range f.queues {
			f.index[f.queues[i].ID] = i
		}
	}
	if place, ok := f.index[id]; ok {
		return place
	}
	return -1
}

// finder finds the queues of the look, none where there is no look.
func (l *look) finder() finder {
	if l == nil {
		return finder{}
	}
	return finder{queues: l.queues}
}
