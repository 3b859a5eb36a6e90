package tracer

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// A library counts from the moment that attached_ns is set, when all of its
// probes stand, until it is cleared, before the first one goes: windows begin and
// end with one store. In the gap posts and completions go by unseen, so that
// windows begin unsynced.

// place attaches every probe of the library. After an error none stays attached:
// they go in the background.
func (k *kernelSide) place(a *attachment, kind linkKind) (err error) {
	defer func() {
		if err != nil {
			a.closer.close(a.takeLinks())
		}
	}()
	for _, f := range a.polls {
		if err := k.placePoll(f, kind); err != nil {
			return fmt.Errorf("probing poll_cq of %s: %w", a.file.DisplayPath, attachError(err, kind))
		}
	}
	for _, f := range a.posts {
		if err := k.placePost(f, kind); err != nil {
			return fmt.Errorf("probing %s of %s: %w", f.function, a.file.DisplayPath, attachError(err, kind))
		}
	}
	for _, p := range a.places {
		links, err := k.attachPoint(a.executable, p.point, p.offsets, uint64(a.cookie), kind)
		a.links = append(a.links, links...)
		if err != nil {
			return fmt.Errorf("probing %s of %s: %w", p.function, a.file.DisplayPath, attachError(err, kind))
		}
	}
	if a.extended != nil {
		if err := k.placeExtended(a, a.extended.places, kind); err != nil {
			return fmt.Errorf("probing the extended verbs of %s: %w", a.file.DisplayPath, err)
		}
	}
	return nil
}

// openWindow observes the library from now on.
func (t *Tracer) openWindow(a *attachment) error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	if err := t.side.wakeQueues(a.cookie, now); err != nil {
		return err
	}
	library, err := t.side.libraries.load(a.cookie)
	if err != nil {
		return err
	}
	for _, f := range a.polls {
		f.ladder.resume(sighting{now: time.Now(), suspicions: library.Suspicions})
		f.evidence.begin(time.Now())
	}
	if err := t.side.place(a, t.kind); err != nil {
		return err
	}
	if now, err = monotonic(); err != nil {
		a.closer.close(a.takeLinks())
		return err
	}
	a.schedule.opened(time.Now())
	return t.side.libraries.store64(a.cookie, unsafe.Offsetof(library.AttachedNs), now)
}

// closeWindow begins to take the library's probes off.
func (t *Tracer) closeWindow(a *attachment) error {
	if err := t.side.libraries.store64(a.cookie, unsafe.Offsetof(bpf.TrackerLibrary{}.AttachedNs), 0); err != nil {
		return err
	}
	a.schedule.closed(time.Now())
	a.closer.close(a.takeLinks())
	a.forsaken = true
	return nil
}

// settle says whether the kernel has let go of every probe that was taken off.
// After a window it then gives up what was outstanding on the library's queues.
func (t *Tracer) settle(a *attachment) (settled bool, err error) {
	if a.closer.busy() {
		return false, nil
	}
	err = a.closer.takeErrors()
	if a.forsaken {
		lost, resetErr := t.side.resetQueues(a.cookie)
		t.libraries.unobserved += lost
		a.forsaken = false
		err = errors.Join(err, resetErr)
	}
	return true, err
}

// turnOff is for a library whose probes cannot be attached any more.
func (t *Tracer) turnOff(a *attachment, err error) {
	a.failures++
	if a.failures <= mostFailures {
		a.schedule.resume = time.Now().Add(windowPeriod << a.failures)
		t.log.Debug("a library is not observed for now", "library", a.file.DisplayPath, "error", err)
		return
	}
	a.off = true
	for _, f := range a.polls {
		f.ladder.enter(modeOff, time.Now())
		t.logMode(slog.LevelWarn, a, f, "its library cannot be probed any more and is not observed: "+err.Error())
	}
}

// wakeQueues begins a window for the queues of a library: that nothing was seen
// of them in the gap does not mean that they were idle.
func (k *kernelSide) wakeQueues(cookie uint32, now uint64) error {
	return k.forEachQueue(func(slot uint32, q *bpf.TrackerQueue) error {
		if q.EndedNs != 0 || q.Library != cookie {
			return nil
		}
		return k.queues.store64(slot, unsafe.Offsetof(q.ActivityNs), now)
	})
}

// resetQueues empties the queues of a library whose probes are gone, and returns
// how many work requests were outstanding on them. What is stored here belongs to
// the data path, of which no program runs on these queues at this time; those on
// the control path may run and leave it alone. A queue on which nothing was posted
// is of no library, and may get its first post from another one. The generation
// changes, so that a call that a thread is inside of
// is of no queue when it returns in a later window.
func (k *kernelSide) resetQueues(cookie uint32) (lost uint64, err error) {
	err = k.forEachQueue(func(slot uint32, q *bpf.TrackerQueue) error {
		if q.EndedNs != 0 || q.Library != cookie {
			return nil
		}
		rest := q.Posted - q.Delivered - q.Retired - q.Undone - q.Lost
		lost += rest
		if err := k.freeSegments(q); err != nil {
			return err
		}
		return k.resetQueue(slot, q, rest)
	})
	return lost, err
}

func (k *kernelSide) resetQueue(slot uint32, q *bpf.TrackerQueue, rest uint64) error {
	var none [len(q.Directory)]uint32
	errs := []error{
		k.queues.storeBytes(slot, unsafe.Offsetof(q.Directory), memoryOf(&none)),
		k.queues.store64(slot, unsafe.Offsetof(q.Head), q.Tail),
		k.queues.store64(slot, unsafe.Offsetof(q.Lost), q.Lost+rest),
		k.queues.store64(slot, unsafe.Offsetof(q.Generation), q.Generation+uint64(k.queues.length)),
		k.queues.store32(slot, unsafe.Offsetof(q.Outstanding), 0),
		k.queues.store32(slot, unsafe.Offsetof(q.Undecided), 0),
		k.queues.store32(slot, unsafe.Offsetof(q.Increasing), 0),
		k.queues.store32(slot, unsafe.Offsetof(q.InOrder), 0),
		k.queues.store32(slot, unsafe.Offsetof(q.RecvKnown), 0),
	}
	if q.Sync == uint32(bpf.TrackerQueueSyncQUEUE_SYNCED) {
		errs = append(errs, k.queues.store32(slot, unsafe.Offsetof(q.Sync), uint32(bpf.TrackerQueueSyncQUEUE_UNSYNCED)))
	}
	return errors.Join(errs...)
}

// freeSegments gives back the memory of what was outstanding on a queue.
func (k *kernelSide) freeSegments(q *bpf.TrackerQueue) error {
	for _, value := range q.Directory {
		id := value & 0xffff
		if id == 0 {
			continue
		}
		if err := k.maps.FreeSegments.Update(nil, id-1, ebpf.UpdateAny); err != nil {
			return fmt.Errorf("giving back segment %d: %w", id-1, err)
		}
	}
	return nil
}
