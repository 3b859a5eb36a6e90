package rdmareceiver

import (
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// stuckLeast is the age from which a send is stuck.
const stuckLeast = time.Second

// hangs follows queue pairs with sends that do not complete: each is reported once,
// and its incident goes on for as long as it does. It is not safe for concurrent
// use.
type hangs struct {
	queues map[verbs.QueueID]*held
}

// any reports whether something was stuck in the last window.
func (h *hangs) any() bool { return len(h.queues) > 0 }

// follow takes the bursts of a window, and returns them with those queue pairs that
// still hang. When the queues could not be looked at, whether they do is not known.
func (h *hangs) follow(bursts []*held, g *glances, now uint64) []*held {
	if h.queues == nil {
		h.queues = map[verbs.QueueID]*held{}
	}
	all := slices.Clone(bursts)
	if g.now != nil {
		all = append(all, h.lasting(bursts, g, now)...)
	}
	for _, b := range bursts {
		if _, known := h.queues[b.queue]; len(b.stuck) > 0 && (known || len(h.queues) < maxHeldQueues) {
			h.queues[b.queue] = b.stuckAlone()
		}
	}
	return all
}

// lasting are the queue pairs that hang and have no burst in this window. Those that
// hang no more are forgotten.
func (h *hangs) lasting(bursts []*held, g *glances, now uint64) []*held {
	fresh := map[verbs.QueueID]bool{}
	for _, b := range bursts {
		fresh[b.queue] = true
	}
	var still []*held
	for id, b := range h.queues {
		if fresh[id] {
			continue
		}
		if b = stillStuck(b, g.queue(id), now); b == nil {
			delete(h.queues, id)
			continue
		}
		still = append(still, b)
	}
	return still
}

// stuckAlone is the burst without the completions, which are of its window.
func (b *held) stuckAlone() *held {
	return &held{queue: b.queue, device: b.device, port: b.port, first: b.first, last: b.last, oldest: b.oldest, stuck: b.stuck}
}

// stillStuck is a queue pair of which something is still stuck, nil when nothing
// is. What has been counted once is not counted again.
func stillStuck(b *held, q *verbs.QueueInfo, now uint64) *held {
	if q == nil || q.Oldest < stuckLeast {
		return nil
	}
	still := b.stuckAlone()
	still.last, still.oldest, still.stuck = now, q.Oldest, nil
	for _, u := range b.stuck {
		u.Age = time.Duration(now - u.Posted)
		if u.Age <= q.Oldest+stuckLeast {
			still.stuck = append(still.stuck, u)
		}
	}
	if len(still.stuck) == 0 {
		return nil
	}
	return still
}
