package rdmareceiver

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// idleActive is for how long a process must have posted in every second, so that
	// it means something when it stops.
	idleActive = 10 * time.Second
	// idleLeast is the shortest silence that means something.
	idleLeast = time.Second
	// idleFactor is how much longer than the longest pause of the last minute a
	// silence has to be.
	idleFactor = 3
	// idleMost is after how long a silence means that the work is done.
	idleMost = time.Minute
	// idleSpacing is the least time between two looks: less than a second without
	// posts is nothing.
	idleSpacing = 700 * time.Millisecond
	// idleMemory is how many pauses are remembered, one for each second with posts.
	idleMemory = 60
	// maxPaces bounds the processes and devices that are followed.
	maxPaces = 4096
)

// idleWatch finds processes that stop posting. It is meant to miss one rather than
// to call a job that pauses regularly silent. It is not safe for concurrent use.
type idleWatch struct {
	paces map[counterKey]*pace
	// looked is when the last look was.
	looked uint64
}

// pace is how a process posts on a device.
type pace struct {
	posted, received uint64
	queues           int
	// since is from when on there were posts in every second, 0 when there were
	// none in the last one before the silence.
	since uint64
	// lastPost is not before the last post. lastReceive is when a receive was last
	// seen to be completed.
	lastPost, lastDelivery, lastReceive uint64
	// sawPost and sawReceive are the looks that first saw the last post and the last
	// receive, sent and taken how many there were before since.
	sawPost, sawReceive uint64
	sent, taken         uint64
	// turns are those of the posts and receives since then.
	turns turns
	// quiet is set when there were no posts at the last look.
	quiet bool
	// pause is the present one, pauses are those before it.
	pause  time.Duration
	pauses [idleMemory]time.Duration
	passed int
}

// usage is what the queues of a process on a device did until now.
type usage struct {
	queues               int
	posted, received     uint64
	activity, delivered  uint64
	sends, receives      uint64
	receivesKnown, hangs bool
}

// look takes a glance, and returns the processes that are silent now.
func (w *idleWatch) look(snap *verbs.Snapshot) []idleProcess {
	if w.paces == nil {
		w.paces = map[counterKey]*pace{}
	}
	if snap.Monotonic-w.looked < uint64(idleSpacing) {
		return nil
	}
	w.looked = snap.Monotonic
	used := usageOf(snap)
	for key := range w.paces {
		if _, there := used[key]; !there {
			delete(w.paces, key)
		}
	}
	var silent []idleProcess
	for key, u := range used {
		p := w.paces[key]
		if p == nil {
			if len(w.paces) < maxPaces {
				w.paces[key] = &pace{posted: u.posted, received: u.received, queues: u.queues}
			}
			continue
		}
		if idle := p.look(snap.Monotonic, u); idle != nil {
			idle.Process = key.process
			silent = append(silent, idleProcess{key: key, idle: *idle})
		}
	}
	return silent
}

// idleProcess is a process that is silent on a device.
type idleProcess struct {
	key  counterKey
	idle diagnose.Idle
}

// usageOf adds up the queues of each process and device. A consumer in the kernel
// is silent whenever nobody asks it for anything.
func usageOf(snap *verbs.Snapshot) map[counterKey]*usage {
	all := map[counterKey]*usage{}
	for i := range snap.Queues {
		q := &snap.Queues[i]
		if q.ID.Process.InKernel() {
			continue
		}
		key := counterKey{q.ID.Process, q.Device}
		u := all[key]
		if u == nil {
			u = &usage{receivesKnown: true}
			all[key] = u
		}
		u.queues++
		u.posted += q.Posted
		u.received += q.Received
		u.activity = max(u.activity, q.Activity)
		u.delivered = max(u.delivered, q.Delivered)
		u.sends += uint64(q.Outstanding)
		u.receives += uint64(q.RecvOutstanding)
		u.receivesKnown = u.receivesKnown && q.RecvKnown
		u.hangs = u.hangs || q.Oldest > idleLeast
	}
	return all
}

// look takes what there is to see now. It returns the silence that means something.
func (p *pace) look(now uint64, u *usage) *diagnose.Idle {
	before := *p
	p.posted, p.received, p.queues, p.lastDelivery = u.posted, u.received, u.queues, u.delivered
	p.turns.look(u)
	if u.received > before.received {
		p.lastReceive, p.sawReceive = now, now
	}
	if u.queues < before.queues || u.posted < before.posted {
		// It gives queues back: it ends, or begins anew.
		p.since = 0
		return nil
	}
	if u.posted > before.posted {
		p.resume(now, u, &before)
		return nil
	}
	p.quiet = true
	if p.lastPost == 0 || now < p.lastPost {
		return nil
	}
	p.pause = time.Duration(now - p.lastPost)
	if !p.means() || u.hangs {
		return nil
	}
	idle := &diagnose.Idle{
		Active: time.Duration(p.lastPost - p.since), Since: p.lastPost, For: p.pause,
		LastDelivery: p.lastDelivery, LastReceive: p.lastReceive,
		SendsOutstanding: u.sends, ReceivesOutstanding: u.receives, HasReceives: u.receivesKnown,
		Ordered: p.sawPost != p.sawReceive, Sends: p.posted - p.sent, Receives: p.received - p.taken,
	}
	if !idle.Ordered {
		p.order(idle)
	}
	return idle
}

// order says of a last post and a last receive that the same look saw which was later,
// where the two took turns.
func (p *pace) order(idle *diagnose.Idle) {
	switch p.turns.last() {
	case lastPosted:
		idle.Ordered, idle.LastReceive = true, min(idle.LastReceive, idle.Since)
	case lastReceived:
		idle.Ordered, idle.LastReceive = true, max(idle.LastReceive, idle.Since+1)
	}
}

// resume notes that there were posts since the last look, at which it was as before.
func (p *pace) resume(now uint64, u *usage, before *pace) {
	if p.since == 0 || p.quiet {
		p.since, p.quiet = now, false
		p.sent, p.taken = before.posted, before.received
		p.turns = turns{}
	}
	p.sawPost = now
	p.pauses[p.passed%idleMemory] = p.pause
	p.passed++
	p.lastPost = min(max(u.activity, p.lastPost), now)
	p.pause = time.Duration(now - p.lastPost)
}

// means reports whether the present pause is unlike those before it.
func (p *pace) means() bool {
	if p.since == 0 || p.lastPost < p.since || p.lastPost-p.since < uint64(idleActive) || p.pause > idleMost {
		return false
	}
	longest := time.Duration(0)
	for _, pause := range p.pauses {
		longest = max(longest, pause)
	}
	return p.pause > max(idleLeast, idleFactor*longest)
}
