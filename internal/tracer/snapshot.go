package tracer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const srqNumber = 0xffffffff

// readSeries reads all aggregates.
func (k *kernelSide) readSeries(name func(uint16) string) ([]verbs.Series, error) {
	var key bpf.TrackerSeriesKey
	var value bpf.TrackerSeries
	var all []verbs.Series
	entries := k.maps.Aggregates.Iterate()
	for entries.Next(&key, &value) {
		all = append(all, seriesOf(&key, &value, name))
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("reading the aggregates: %w", err)
	}
	return all, nil
}

func seriesOf(key *bpf.TrackerSeriesKey, value *bpf.TrackerSeries, name func(uint16) string) verbs.Series {
	s := verbs.Series{
		Key: verbs.SeriesKey{
			Process:   verbs.ProcessID{TGID: key.Tgid, Incarnation: key.Incarnation},
			Device:    name(key.Device),
			Operation: verbs.Operation(key.Operation),
			Status:    verbs.Status(key.Status),
		},
		Completions: value.Completions,
		Requests:    value.Completions + value.Retired,
		Bytes:       value.Bytes,
		Durations:   verbs.Histogram{Counts: value.Buckets},
		Sum:         time.Duration(value.SumNs),
		Min:         time.Duration(value.MinNs),
		Max:         time.Duration(value.MaxNs),
		Slow:        value.Slow,
		Excess:      time.Duration(value.ExcessNs),
	}
	for _, n := range value.Buckets {
		s.Timed += n
	}
	for i := range s.StageTime {
		s.StageTime[i] = time.Duration(value.StageNs[i])
	}
	return s
}

func (k *kernelSide) readRejected(name func(uint16) string) ([]verbs.RejectedPosts, error) {
	var key bpf.TrackerRejectedKey
	var count uint64
	var all []verbs.RejectedPosts
	entries := k.maps.Rejected.Iterate()
	for entries.Next(&key, &count) {
		all = append(all, verbs.RejectedPosts{
			Process: verbs.ProcessID{TGID: key.Tgid, Incarnation: key.Incarnation},
			Device:  name(uint16(key.Device)),
			Errno:   key.Error,
			Count:   count,
		})
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("reading the rejected posts: %w", err)
	}
	return all, nil
}

func (k *kernelSide) countUntracked() uint64 {
	var key bpf.TrackerQueueKey
	var seen uint64
	n := uint64(0)
	entries := k.maps.UntrackedQueues.Iterate()
	for entries.Next(&key, &seen) {
		n++
	}
	return n
}

// queueInfo describes a live queue; interval is the number of the collection
// that its peak counts for.
func (k *kernelSide) queueInfo(q *bpf.TrackerQueue, now uint64, interval uint32, name func(uint16) string) verbs.QueueInfo {
	info := verbs.QueueInfo{
		ID: verbs.QueueID{
			Process:  processOf(&q.Key),
			Context:  q.Key.Object,
			QPNumber: q.Key.QpNum,
		},
		Type:        verbs.QPType(q.QpType),
		RemoteQP:    q.RemoteQp,
		Device:      name(q.Device),
		Port:        q.Port,
		State:       stateOf(q),
		SendCQ:      q.SendCq,
		Outstanding: q.Outstanding,
		Peak:        q.Outstanding,
		Limit:       q.Limit,
		Posted:      q.Posted,
		Received:    q.RecvCompleted,
		Activity:    q.ActivityNs,
		Delivered:   q.DeliveredNs,
		Traffic:     trafficOf(q),
	}
	if info.ID.Process.InKernel() {
		info.SendCQ = 0
	}
	if q.PeakInterval == interval {
		info.Peak = max(q.Peak, q.Outstanding)
	}
	if q.RecvKnown != 0 && q.RecvPosted >= q.RecvCompleted {
		info.RecvKnown = true
		info.RecvOutstanding = uint32(q.RecvPosted - q.RecvCompleted)
	}
	if info.State != verbs.QueueSynced || q.Outstanding == 0 {
		return info
	}
	if entry, _, ok := k.oldest(q); ok && now > entry.PostedNs {
		info.Oldest = time.Duration(now - entry.PostedNs)
	}
	return info
}

// stateOf: a queue on which nothing was posted yet has nothing unknown on it.
func stateOf(q *bpf.TrackerQueue) verbs.QueueState {
	if bpf.TrackerQueueSync(q.Sync) == bpf.TrackerQueueSyncQUEUE_UNSYNCED || q.Undecided != 0 {
		return verbs.QueueUnsynced
	}
	return verbs.QueueSynced
}

// readQueues lists the live queues and closes the books of all; resting is told of
// each queue that ended and whose slot still rests.
func (k *kernelSide) readQueues(now uint64, interval uint32, books *ledger, name func(uint16) string, resting func(*bpf.TrackerQueue)) ([]verbs.QueueInfo, *ledger, uint64, error) {
	var queues []verbs.QueueInfo
	outstanding := uint64(0)
	books = books.clone()
	err := k.forEachQueue(func(_ uint32, q *bpf.TrackerQueue) error {
		if q.EndedNs != 0 {
			books.add(q)
			resting(q)
			return nil
		}
		books.posted += q.Posted
		books.delivered += q.Delivered
		books.retired += q.Retired
		books.undone += q.Undone
		books.lost += q.Lost
		books.addEmptied(q)
		outstanding += uint64(q.Outstanding)
		if q.Key.QpNum != srqNumber {
			queues = append(queues, k.queueInfo(q, now, interval, name))
		}
		return nil
	})
	if err == nil {
		err = k.describePollers(queues)
	}
	return queues, books, outstanding, err
}

// Snapshot reads everything there is to know at this moment. It also starts a
// new interval for the peaks of the queues, and drops the aggregates of processes
// that it lists as exited and of devices that it lists as gone: they appear for the
// last time.
func (t *Tracer) Snapshot() (snapshot verbs.Snapshot, err error) {
	t.meter.run(func() { snapshot, err = t.snapshot() })
	return snapshot, err
}

func (t *Tracer) snapshot() (verbs.Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return verbs.Snapshot{}, errClosed
	}
	now, err := monotonic()
	if err != nil {
		return verbs.Snapshot{}, err
	}
	if err := t.devices.refresh(); err != nil {
		return verbs.Snapshot{}, err
	}
	counters, err := t.side.readCounters()
	if err != nil {
		return verbs.Snapshot{}, err
	}
	snapshot := verbs.Snapshot{
		Monotonic:       now,
		Completions:     completionBalance(&counters),
		Losses:          t.losses(&counters),
		Probes:          t.probeInfo(),
		UntrackedQueues: t.side.countUntracked(),
		Exited:          slices.Collect(maps.Keys(t.exited)),
	}
	if snapshot.Series, err = t.side.readSeries(t.devices.name); err != nil {
		return verbs.Snapshot{}, err
	}
	if snapshot.Rejected, err = t.side.readRejected(t.devices.name); err != nil {
		return verbs.Snapshot{}, err
	}
	counted := countedOn(&snapshot)
	snapshot.Series = slices.DeleteFunc(snapshot.Series, func(s verbs.Series) bool { return !t.showsOn(s.Key.Process, s.Key.Device) })
	snapshot.Rejected = slices.DeleteFunc(snapshot.Rejected, func(r verbs.RejectedPosts) bool { return !t.showsOn(r.Process, r.Device) })
	if snapshot.Registrations, err = t.readRegistrations(); err != nil {
		return verbs.Snapshot{}, err
	}
	resting := func(q *bpf.TrackerQueue) { t.ended.resting(q, t.describeEnded) }
	queues, books, outstanding, err := t.side.readQueues(now, t.interval, t.books, t.devices.name, resting)
	if err != nil {
		return verbs.Snapshot{}, err
	}
	snapshot.Queues, snapshot.Ended = t.shown(queues), t.shown(t.ended.take())
	t.describeQueues(snapshot.Queues)
	snapshot.WQEs = wqeBalance(books, outstanding, t.libraries.unobserved, &counters)
	snapshot.Empty = t.emptyOf(books)
	if snapshot.GoneDevices, err = t.restDevices(now, counted); err != nil {
		t.log.Warn("what is kept of devices that are gone was not given up", "error", err)
	}
	t.interval++
	if err := t.side.interval.Set(t.interval); err != nil {
		return verbs.Snapshot{}, fmt.Errorf("starting a new interval: %w", err)
	}
	if err := t.forgetExited(); err != nil {
		// The snapshot is whole, and the last one that tells of them.
		t.log.Warn("some aggregates of processes that have exited are still in the maps", "error", err)
	}
	return snapshot, nil
}

func (t *Tracer) shown(queues []verbs.QueueInfo) []verbs.QueueInfo {
	return slices.DeleteFunc(queues, func(q verbs.QueueInfo) bool { return !t.showsOn(q.ID.Process, q.Device) })
}

// describeQueues asks the kernel about the peers, and about what libibverbs did
// not tell: nothing of queues of static libraries.
func (t *Tracer) describeQueues(queues []verbs.QueueInfo) {
	for i := range queues {
		q := &queues[i]
		if qp, ok := t.resources.find(q.ID, q.Device); ok {
			describeQueue(q, &qp)
		}
	}
}

func wqeBalance(books *ledger, outstanding, unobserved uint64, counters *[bpf.TrackerCounterCOUNTERS]uint64) verbs.WQEBalance {
	b := verbs.WQEBalance{
		Posted:      books.posted + counters[bpf.TrackerCounterWQES_POSTED_UNTRACKED],
		Delivered:   books.delivered,
		Retired:     books.retired,
		Undone:      books.undone,
		Outstanding: outstanding,
		Discarded:   books.discarded,
		Lost:        map[string]uint64{},
	}
	for counter, name := range lostRequests {
		if n := counters[counter]; n != 0 {
			b.Lost[name] = n
		}
	}
	if unobserved != 0 {
		b.Lost[lostUnobserved] = unobserved
	}
	return b
}

func (t *Tracer) losses(counters *[bpf.TrackerCounterCOUNTERS]uint64) map[string]uint64 {
	losses := map[string]uint64{}
	for _, names := range []map[bpf.TrackerCounter]string{lostRequests, otherLosses} {
		for counter, name := range names {
			losses[name] = counters[counter]
		}
	}
	losses[lostUnobserved] = t.libraries.unobserved
	losses["consumer_too_slow"] = t.dropped.Load()
	losses["library_out_of_reach"] = t.missed.Load()
	losses["undecodable_record"] = t.undecodable.Load()
	losses["process_undecided"] = t.undecided.Load()
	losses["baseline_forgotten"] = t.baselines.dropped()
	t.resources.addLosses(losses)
	t.kernel.addLosses(losses)
	return losses
}

func (t *Tracer) probeInfo() []verbs.ProbeInfo {
	var probes []verbs.ProbeInfo
	if core, ok := t.resources.probeInfo(); ok {
		probes = append(probes, core)
	}
	probes = append(probes, t.kernel.probeInfo()...)
	for _, a := range t.libraries.attachments {
		observed, paid := a.schedule.takeShares(time.Now())
		info := verbs.ProbeInfo{
			Library:  a.file.DisplayPath,
			Provider: a.file.Library.Name,
			Mode:     string(modeOfOthers(a)),
			Link:     string(t.kind),
			Used:     a.hit,
			Observed: observed,
			Paid:     paid,
		}
		if a.file.Library.Kind == provider.Verbs {
			for _, target := range a.file.Library.Targets {
				info.Functions = append(info.Functions, target.Function.String())
			}
			probes = append(probes, info)
		}
		for _, f := range a.posts {
			info.Mode, info.Functions = string(f.mode()), []string{f.function.String()}
			probes = append(probes, info)
		}
		if objects := a.extended.objects(); len(objects) > 0 {
			info.Mode, info.Functions = string(modeOfOthers(a)), objects
			probes = append(probes, info)
		}
		for _, f := range a.polls {
			info.Mode, info.Functions = string(f.ladder.mode), []string{provider.PollCQ.String()}
			probes = append(probes, info)
		}
	}
	return probes
}

// modeOfOthers is how the functions but poll_cq are observed.
func modeOfOthers(a *attachment) pollMode {
	if a.off {
		return modeOff
	}
	return modeWindows
}

// forgetExited drops the aggregates of processes that the snapshot listed.
func (t *Tracer) forgetExited() error {
	if len(t.exited) == 0 {
		return nil
	}
	gone := t.exited
	t.exited = map[verbs.ProcessID]bool{}
	isGone := func(tgid uint32, incarnation uint64) bool {
		return gone[verbs.ProcessID{TGID: tgid, Incarnation: incarnation}]
	}
	var key bpf.TrackerSeriesKey
	var value bpf.TrackerSeries
	series := deleteMatching(t.side.maps.Aggregates, &key, &value, func() bool { return isGone(key.Tgid, key.Incarnation) })
	var rejectedKey bpf.TrackerRejectedKey
	var count uint64
	posts := deleteMatching(t.side.maps.Rejected, &rejectedKey, &count, func() bool {
		return isGone(rejectedKey.Tgid, rejectedKey.Incarnation)
	})
	for process := range gone {
		delete(t.registrants, process)
		t.choices.forget(process)
		for key := range t.books.emptied {
			if key.process == process {
				delete(t.books.emptied, key)
			}
		}
	}
	return errors.Join(series, posts, t.resources.forgetRegions(isGone))
}

// deleteMatching removes the entries of a hash map for which matches reports
// true, after key and value were set.
func deleteMatching[K, V any](m *ebpf.Map, key *K, value *V, matches func() bool) error {
	var drop []K
	entries := m.Iterate()
	for entries.Next(key, value) {
		if matches() {
			drop = append(drop, *key)
		}
	}
	for i := range drop {
		_ = m.Delete(&drop[i]) // It may be gone already.
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", m.String(), err)
	}
	return nil
}
