package tracer

import (
	"slices"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Glance reads the live queues and what is counted by process, and nothing else:
// of the snapshot it returns only Monotonic, Queues, Rejected, Empty and
// Registrations are set. It may be called as often as once a second, and changes
// nothing that Snapshot tells. The paths of queues, which the kernel is asked for
// one by one, are there when paths is set.
func (t *Tracer) Glance(paths bool) (glance verbs.Snapshot, err error) {
	t.meter.run(func() { glance, err = t.glance(paths) })
	return glance, err
}

func (t *Tracer) glance(paths bool) (verbs.Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return verbs.Snapshot{}, errClosed
	}
	now, err := monotonic()
	if err != nil {
		return verbs.Snapshot{}, err
	}
	glance := verbs.Snapshot{Monotonic: now}
	queues, books, _, err := t.side.readQueues(now, t.interval, t.books, t.devices.name, func(*bpf.TrackerQueue) {})
	if err != nil {
		return verbs.Snapshot{}, err
	}
	glance.Queues = t.shown(queues)
	if paths {
		t.describeQueues(glance.Queues)
	}
	glance.Empty = t.emptyOf(books)
	if glance.Rejected, err = t.side.readRejected(t.devices.name); err != nil {
		return verbs.Snapshot{}, err
	}
	glance.Rejected = slices.DeleteFunc(glance.Rejected, func(r verbs.RejectedPosts) bool { return !t.showsOn(r.Process, r.Device) })
	if glance.Registrations, err = t.readRegistrations(); err != nil {
		return verbs.Snapshot{}, err
	}
	return glance, nil
}

// emptyOf is how often Receive Queues ran empty, by process and device.
func (t *Tracer) emptyOf(books *ledger) []verbs.ReceiveEmpty {
	var all []verbs.ReceiveEmpty
	for key, n := range books.emptied {
		if device := t.devices.name(key.device); t.showsOn(key.process, device) {
			all = append(all, verbs.ReceiveEmpty{Process: key.process, Device: device, Count: n})
		}
	}
	return all
}
