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
// still hang.
func (h *hangs) follow(bursts []*held, g *glances, now uint64) []*held {
	if h.queues == nil {
		h.queues = map[verbs.QueueID]*held{}
	}
	fresh := map[verbs.QueueID]bool{}
	for _, b := range bursts {
		fresh[b.queue] = true
	}
	all := slices.Clone(bursts)
	for id, b := range h.queues {
		if fresh[id] {
			continue
		}
		if b = stillStuck(b, g.queue(id), now); b == nil {
			delete(h.queues, id)
			continue
		}
		all = append(all, b)
	}
	for _, b := range bursts {
		if len(b.stuck) > 0 && len(h.queues) < maxHeldQueues {
			h.queues[b.queue] = b
		}
	}
	return all
}

// stillStuck is a queue pair of which something is still stuck, nil when nothing
// is. What has been counted once is not counted again.
func stillStuck(b *held, q *verbs.QueueInfo, now uint64) *held {
	if q == nil || q.Oldest < stuckLeast {
		return nil
	}
	still := &held{queue: b.queue, device: b.device, port: b.port, first: b.first, last: now, oldest: q.Oldest}
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
