package rdmareceiver

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// maxHeldQueues is how many queue pairs may be slow in one window and be judged.
	// What is slow on others is exported as unknown, and counted as such.
	maxHeldQueues = 256
	// maxHeldOfQueue is how many completions, and how many stuck sends, of one queue
	// pair a verdict is made of.
	maxHeldOfQueue = 64
)

// holder holds what is slow in the present window, by queue pair, until it is
// judged. It is not safe for concurrent use.
type holder struct {
	queues map[verbs.QueueID]*held
	// order has the bursts in the order of their first completion.
	order []*held
	// refused counts what was slow, failed or stuck on queue pairs that found no room.
	refused int
}

// held is what was slow on one queue pair in a window.
type held struct {
	queue  verbs.QueueID
	device string
	port   uint8
	// slow is a sample of the completions, in the order of delivery: each one whose
	// number is a multiple of stride.
	slow   []verbs.Completion
	stride uint64
	// reported counts all of them, over those that took longer than the threshold,
	// the rest having failed. lost is the excess time of all, overLost of those.
	reported, over uint64
	lost, overLost time.Duration
	// occasions, late and failed are what Report of internal/incident says of the
	// same names; until is when the present occasion ends.
	occasions, failed uint64
	late              time.Duration
	until             uint64
	// worst is the longest duration. first is when the first request was posted,
	// last when the last one was delivered or looked at.
	worst       time.Duration
	first, last uint64
	// stages is where the time of all of them went.
	stages [verbs.NumStages]time.Duration
	// stuck are sends that are outstanding, stuckCount counts all, oldest is the
	// age of the oldest.
	stuck      []verbs.Stuck
	stuckCount uint64
	oldest     time.Duration
}

func newHolder() *holder { return &holder{queues: map[verbs.QueueID]*held{}} }

// isSlow is false of a completion that failed and took no longer than others.
func isSlow(c *verbs.Completion) bool { return c.Excess() > c.Threshold }

// hold keeps a completion.
func (h *holder) hold(c *verbs.Completion) {
	b := h.burst(&c.WorkRequest)
	if b == nil {
		h.refused++
		return
	}
	b.count(c)
	b.sample(c)
}

// holdStuck keeps a send that is stuck.
func (h *holder) holdStuck(u *verbs.Stuck) {
	b := h.burst(&u.WorkRequest)
	if b == nil {
		h.refused++
		return
	}
	b.span(u.Posted, u.Posted+uint64(u.Age))
	b.stuckCount++
	b.oldest = max(b.oldest, u.Age)
	if len(b.stuck) < maxHeldOfQueue {
		b.stuck = append(b.stuck, *u)
	}
}

// burst is nil when there is no room for another queue pair.
func (h *holder) burst(wr *verbs.WorkRequest) *held {
	b := h.queues[wr.Queue]
	if b == nil && len(h.order) < maxHeldQueues {
		b = &held{queue: wr.Queue, device: wr.Device, port: wr.Port, stride: 1, first: wr.Posted}
		h.queues[wr.Queue] = b
		h.order = append(h.order, b)
	}
	return b
}

// take returns the bursts of the window that ends, and how much found no room, and
// starts anew.
func (h *holder) take() (bursts []*held, refused int) {
	bursts, refused = h.order, h.refused
	*h = *newHolder()
	return bursts, refused
}

func (b *held) count(c *verbs.Completion) {
	b.span(c.Posted, c.Delivered)
	b.reported++
	b.lost += c.Excess()
	b.worst = max(b.worst, c.Duration())
	for stage, spent := range c.Stages {
		b.stages[stage] += spent
	}
	if isSlow(c) {
		b.over++
		b.overLost += c.Excess()
	}
	b.countOccasion(c)
}

// slightly is what part of the port's work a request may be late by without that
// being an occasion for an incident: the rate of a port is not known that well.
const slightly = 4

// countOccasion joins requests that were late at the same time, as they come.
func (b *held) countOccasion(c *verbs.Completion) {
	late := c.Excess()
	switch {
	case c.Status == verbs.StatusWRFlushErr:
		return
	case c.Status != verbs.StatusSuccess:
		b.failed++
		return
	case !isSlow(c), late < c.Busy/slightly:
		return
	}
	switch from := c.Delivered - uint64(late); {
	case from >= b.until:
		b.occasions++
		b.late += late
	case c.Delivered > b.until:
		b.late += time.Duration(c.Delivered - b.until)
	}
	b.until = max(b.until, c.Delivered)
}

// divide parts a burst in two, of which one has the completions to be taken out. That
// one is nil, and the other the whole burst, when there are none or nothing else, when
// sends are stuck, or when only a sample is at hand: then the parts cannot be counted.
func (b *held) divide(out func(*verbs.Completion) bool) (rest, apart *held) {
	if b.stuckCount > 0 || uint64(len(b.slow)) != b.reported {
		return b, nil
	}
	in, taken := newHolder(), newHolder()
	for i := range b.slow {
		if out(&b.slow[i]) {
			taken.hold(&b.slow[i])
		} else {
			in.hold(&b.slow[i])
		}
	}
	if len(in.order) == 0 || len(taken.order) == 0 {
		return b, nil
	}
	return in.order[0], taken.order[0]
}

func (b *held) span(from, to uint64) {
	b.first, b.last = min(b.first, from), max(b.last, to)
}

// sample keeps one of every so many completions: it keeps each while there is
// room, and drops every second one when there is none.
func (b *held) sample(c *verbs.Completion) {
	if (b.reported-1)%b.stride != 0 {
		return
	}
	if len(b.slow) == maxHeldOfQueue {
		for i := range maxHeldOfQueue / 2 {
			b.slow[i] = b.slow[2*i]
		}
		b.slow = b.slow[:maxHeldOfQueue/2]
		b.stride *= 2
		if (b.reported-1)%b.stride != 0 {
			return
		}
	}
	b.slow = append(b.slow, *c)
}
