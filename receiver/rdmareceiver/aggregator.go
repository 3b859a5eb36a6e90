package rdmareceiver

import (
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/incident"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// jobRetention is how long the counters of a job without a process are kept. A
// job that restarts within it goes on with the series it had.
const jobRetention = 15 * time.Minute

// maxExemplars bounds the exemplars of one series and interval.
const maxExemplars = 8

// aggregator turns snapshots, which know processes and queues, into the series
// that are exported, which know jobs and devices, and more by option. Counters take only what a
// process added since the last snapshot, so the end of a process takes nothing
// away. It is not safe for concurrent use.
type aggregator struct {
	maxSeries int
	breakdown breakdown
	identify  func(verbs.ProcessID) *identity
	// named holds the owners of the processes of the present snapshot.
	named     map[verbs.ProcessID]owner
	errnoName func(uint32) string

	series map[seriesKey]*series
	owners map[owner]*ownerState
	// previous counters, by what the tracer counts them under.
	counters map[verbs.SeriesKey]*verbs.Series
	rejected map[rejectedKey]uint64
	empty    map[emptyKey]uint64
	// registered is what processes registered until the last snapshot.
	registered map[registrationsKey]verbs.Registrations
	// causes has the causes of what is slow, active the incidents that are open, and
	// wereActive those that were at the snapshot before.
	causes             causeBook
	active, wereActive map[incident.Key]int
	// routes is nil unless they are asked for.
	routes *routeTable
	// transmitted is the payload that each device sent, of all processes so far.
	transmitted map[string]uint64

	// snapshot is the number of the present one, started the wall time from
	// which the counters of a new owner count.
	snapshot uint64
	started  pcommon.Timestamp
	previous pcommon.Timestamp
}

type rejectedKey struct {
	process verbs.ProcessID
	device  string
	errno   uint32
}

type emptyKey struct {
	process verbs.ProcessID
	device  string
}

// ownerState is when the series of an owner began, and when it last had a
// process.
type ownerState struct {
	start, lastAlive pcommon.Timestamp
	// seen is the number of the last snapshot in which it had one.
	seen uint64
}

func newAggregator(cfg *Config, identify func(verbs.ProcessID) *identity, errnoName func(uint32) string, started pcommon.Timestamp) *aggregator {
	a := &aggregator{
		maxSeries: cfg.MaxSeries, breakdown: newBreakdown(cfg.MetricAttributes), identify: identify, errnoName: errnoName,
		series: map[seriesKey]*series{}, owners: map[owner]*ownerState{},
		counters: map[verbs.SeriesKey]*verbs.Series{}, rejected: map[rejectedKey]uint64{}, empty: map[emptyKey]uint64{},
		registered: map[registrationsKey]verbs.Registrations{}, transmitted: map[string]uint64{},
		started: started, previous: started,
	}
	if cfg.Routes {
		a.routes = &routeTable{}
	}
	return a
}

// add takes a snapshot that was taken at the given wall time. It returns the
// series that end with it.
func (a *aggregator) add(snap *verbs.Snapshot, now pcommon.Timestamp) (ended []seriesKey, owners map[owner]*ownerState) {
	a.snapshot++
	a.named = map[verbs.ProcessID]owner{}
	a.reviveOwners(snap, now)
	a.addCounters(snap)
	a.addRejected(snap)
	a.addEmpty(snap)
	a.addRegistrations(snap)
	a.addQueues(snap)
	a.addRoutes(snap, now)
	a.addProbes(snap)
	a.addIncidents()
	a.forgetDevices(snap)
	ended = append(a.endGauges(), a.endOwners(now)...)
	owners = maps.Clone(a.owners)
	a.forgetEnded(ended)
	a.previous = now
	return ended, owners
}

// reviveOwners notes which owners have a process.
func (a *aggregator) reviveOwners(snap *verbs.Snapshot, now pcommon.Timestamp) {
	for process := range processesOf(snap) {
		of := a.ownerOf(process)
		state := a.owners[of]
		if state == nil {
			// What it did until now, it did since the last snapshot.
			state = &ownerState{start: a.previous}
			a.owners[of] = state
		}
		state.lastAlive, state.seen = now, a.snapshot
	}
}

// ownerOf asks who a process is once a snapshot.
func (a *aggregator) ownerOf(process verbs.ProcessID) owner {
	of, ok := a.named[process]
	if !ok {
		of = a.breakdown.ownerOf(process, a.identify(process))
		a.named[process] = of
	}
	return of
}

// processesOf returns every process that a snapshot speaks of.
func processesOf(snap *verbs.Snapshot) map[verbs.ProcessID]bool {
	found := map[verbs.ProcessID]bool{}
	for i := range snap.Series {
		found[snap.Series[i].Key.Process] = true
	}
	for i := range snap.Queues {
		found[snap.Queues[i].ID.Process] = true
	}
	for i := range snap.Rejected {
		found[snap.Rejected[i].Process] = true
	}
	for i := range snap.Empty {
		found[snap.Empty[i].Process] = true
	}
	for i := range snap.Registrations {
		found[snap.Registrations[i].Process] = true
	}
	return found
}

func (a *aggregator) addCounters(snap *verbs.Snapshot) {
	counters := byKey(snap.Series)
	slow := map[counterKey]loss{}
	for key, now := range counters {
		before := a.counters[key]
		increase := increaseOf(now, before)
		a.addIncrease(&increase)
		if key.Operation != verbs.OpRecv {
			of := counterKey{key.Process, key.Device}
			slow[of] = slow[of].plus(loss{count: increase.Slow, excess: increase.Excess})
		}
	}
	a.addSlow(slow)
	a.counters = counters
}

// addIncrease spreads what one process did with one operation over the series.
func (a *aggregator) addIncrease(s *verbs.Series) {
	at := seriesKey{owner: a.ownerOf(s.Key.Process), device: s.Key.Device}
	a.count(at.ofCompletions(wqeCompletions, s.Key.Operation, s.Key.Status), s.Completions)
	a.addDurations(at.ofCompletions(wqeDuration, s.Key.Operation, s.Key.Status), s)
	a.count(at.with(ioBytes, direction(s.Key.Operation)), s.Bytes)
	if !s.Key.Operation.Receives() {
		a.transmitted[s.Key.Device] += s.Bytes
	}
	if s.Key.Operation == verbs.OpRecv {
		// Receives are not timed: they have no stages and are never slow.
		return
	}
	for stage, spent := range s.StageTime {
		if spent > 0 {
			a.count(at.with(wqeStageTime, verbs.Stage(stage).String()), nanoseconds(spent))
		}
	}
}

// ofCompletions is the series of completions of one kind.
func (k seriesKey) ofCompletions(i instrument, operation verbs.Operation, status verbs.Status) seriesKey {
	k.instrument, k.detail = i, operation.String()
	if status != verbs.StatusSuccess {
		k.errorType = status.String()
	}
	return k
}

func (k seriesKey) with(i instrument, detail string) seriesKey {
	k.instrument, k.detail = i, detail
	return k
}

func direction(o verbs.Operation) string {
	if o.Receives() {
		return "receive"
	}
	return "transmit"
}

func nanoseconds(d time.Duration) uint64 { return uint64(max(d, 0)) }

func (a *aggregator) addDurations(key seriesKey, s *verbs.Series) {
	increase := durationSums{histogram: s.Durations, sum: s.Sum, min: s.Min, max: s.Max}
	if increase.count() == 0 {
		return
	}
	to := a.at(key)
	if to.durations == nil {
		to.durations = &durationSums{}
	}
	to.durations.add(&increase)
}

func (a *aggregator) addRejected(snap *verbs.Snapshot) {
	rejected := make(map[rejectedKey]uint64, len(snap.Rejected))
	for _, r := range snap.Rejected {
		rejected[rejectedKey{r.Process, r.Device, r.Errno}] += r.Count
	}
	for key, count := range rejected {
		at := seriesKey{owner: a.ownerOf(key.process), device: key.device, instrument: sqRejectedPosts, errorType: a.postError(key.errno)}
		a.count(at, increaseOfCount(count, a.rejected[key]))
	}
	a.rejected = rejected
}

// errorOther is the value of error.type for errors without a name of their own,
// by the semantic conventions.
const errorOther = "_OTHER"

// postError names why a post was refused.
func (a *aggregator) postError(errno uint32) string {
	if errno == 0 {
		return errorOther
	}
	return a.errnoName(errno)
}

func (a *aggregator) addEmpty(snap *verbs.Snapshot) {
	empty := make(map[emptyKey]uint64, len(snap.Empty))
	for _, e := range snap.Empty {
		empty[emptyKey{e.Process, e.Device}] += e.Count
	}
	for key, count := range empty {
		at := seriesKey{owner: a.ownerOf(key.process), device: key.device, instrument: rqEmpty}
		a.count(at, increaseOfCount(count, a.empty[key]))
	}
	a.empty = empty
}

func (a *aggregator) addQueues(snap *verbs.Snapshot) {
	exited := exitedIn(snap)
	for i := range snap.Queues {
		if q := &snap.Queues[i]; !exited[q.ID.Process] {
			a.addQueue(q)
		}
	}
	if snap.UntrackedQueues > 0 {
		host := seriesKey{ofHost: true}
		a.set(host.with(queueCount, verbs.QueueUntracked.String()), int64(snap.UntrackedQueues))
	}
}

// addProbes tells how the providers in use are observed.
func (a *aggregator) addProbes(snap *verbs.Snapshot) {
	for _, p := range snap.Probes {
		if !p.Used {
			continue
		}
		at := seriesKey{ofHost: true, provider: p.Provider}
		a.setLeast(at.with(probeShare, ""), p.Observed)
		for _, function := range p.Functions {
			mode := at.with(probeMode, p.Mode)
			mode.function = function
			a.set(mode, 1)
		}
	}
}

func (a *aggregator) addQueue(q *verbs.QueueInfo) {
	at := seriesKey{owner: a.ownerOf(q.ID.Process), queue: a.breakdown.queueOf(q), device: q.Device}
	a.set(at.with(queueCount, q.State.String()), 1)
	if q.RecvKnown {
		received := at
		// The Completion Queue that is known is that of the sends.
		received.queue.cq = 0
		a.set(received.with(rqOutstanding, ""), int64(q.RecvOutstanding))
	}
	if q.Limit > 0 {
		a.set(at.with(sqLimit, ""), int64(q.Limit))
	}
	if q.State != verbs.QueueSynced {
		// How many requests are on it is not certain.
		return
	}
	a.set(at.with(sqOutstanding, ""), int64(q.Outstanding))
	a.set(at.with(wqeOldestOutstanding, ""), int64(q.Oldest))
	a.set(at.with(sqPeakOutstanding, ""), int64(q.Peak))
	if q.Limit > 0 {
		a.setRatio(at.with(sqUtilization, ""), float64(q.Peak)/float64(q.Limit))
	}
}

// count adds to a counter. A counter begins with the first thing it counts,
// except that of slow completions and their time: 0 slow is worth knowing.
func (a *aggregator) count(key seriesKey, increase uint64) {
	if increase == 0 && key.instrument != wqeSlowCompletions && key.instrument != wqeExcessTime {
		if s := a.series[key]; s != nil {
			s.touched = a.snapshot
		}
		return
	}
	a.at(key).value += int64(increase)
}

// set combines a value with the others that the present snapshot has for the
// same series.
func (a *aggregator) set(key seriesKey, value int64) {
	s := a.atFresh(key)
	if key.instrument.fold() == foldMax {
		s.value = max(s.value, value)
		return
	}
	s.value += value
}

func (a *aggregator) setLeast(key seriesKey, ratio float64) {
	if s := a.series[a.room(key)]; s != nil && s.touched == a.snapshot {
		ratio = min(s.ratio, ratio)
	}
	a.at(key).ratio = ratio
}

func (a *aggregator) setRatio(key seriesKey, ratio float64) {
	s := a.atFresh(key)
	s.ratio = max(s.ratio, ratio)
}

// atFresh returns the series, emptied of what an earlier snapshot put in it.
func (a *aggregator) atFresh(key seriesKey) *series {
	if s := a.series[a.room(key)]; s != nil && s.touched != a.snapshot {
		s.value, s.ratio = 0, 0
	}
	return a.at(key)
}

// at returns the series, and makes it if it is new. Over the bound, series are
// folded into one for each instrument.
func (a *aggregator) at(key seriesKey) *series {
	key = a.room(key)
	s := a.series[key]
	if s == nil {
		s = &series{}
		a.series[key] = s
	}
	s.touched = a.snapshot
	return s
}

// room returns the key under which there is room for the series.
func (a *aggregator) room(key seriesKey) seriesKey {
	if _, ok := a.series[key]; ok || len(a.series) < a.maxSeries-int(numInstruments) {
		return key
	}
	return seriesKey{instrument: key.instrument, ofHost: true, overflow: true}
}

// endGauges returns the series of momentary values that have none any more.
func (a *aggregator) endGauges() []seriesKey {
	var ended []seriesKey
	for key, s := range a.series {
		if key.instrument.fold() != foldCounter && s.touched != a.snapshot {
			ended = append(ended, key)
		}
	}
	return ended
}

// endOwners returns the counters of processes that have exited, and of jobs that
// have had no process for long. While there is no room for new series, any job
// without a process has to go.
func (a *aggregator) endOwners(now pcommon.Timestamp) []seriesKey {
	full := len(a.series) >= a.maxSeries-int(numInstruments)
	over := map[owner]bool{}
	for of, state := range a.owners {
		if state.seen == a.snapshot {
			continue
		}
		idle := now.AsTime().Sub(state.lastAlive.AsTime())
		if idle > jobRetention || full || !of.lasting() {
			over[of] = true
		}
	}
	if len(over) == 0 {
		return nil
	}
	var ended []seriesKey
	for key := range a.series {
		if !key.ofHost && over[key.owner] && key.instrument.fold() == foldCounter {
			ended = append(ended, key)
		}
	}
	return ended
}

func (a *aggregator) forgetEnded(ended []seriesKey) {
	for _, key := range ended {
		delete(a.series, key)
	}
	inUse := map[owner]bool{}
	for key := range a.series {
		inUse[key.owner] = true
	}
	maps.DeleteFunc(a.owners, func(of owner, state *ownerState) bool {
		return !inUse[of] && state.seen != a.snapshot
	})
}

// forgetDevices notes that what is counted on some devices begins at 0 from now on.
func (a *aggregator) forgetDevices(snap *verbs.Snapshot) {
	if len(snap.GoneDevices) == 0 {
		return
	}
	isGone := func(device string) bool { return slices.Contains(snap.GoneDevices, device) }
	maps.DeleteFunc(a.counters, func(k verbs.SeriesKey, _ *verbs.Series) bool { return isGone(k.Device) })
	maps.DeleteFunc(a.rejected, func(k rejectedKey, _ uint64) bool { return isGone(k.device) })
	maps.DeleteFunc(a.empty, func(k emptyKey, _ uint64) bool { return isGone(k.device) })
}

// addExemplar notes an exported span for the next point of its series.
func (a *aggregator) addExemplar(key seriesKey, e exemplar) {
	s := a.series[key]
	if s == nil || s.durations == nil || len(s.exemplars) >= maxExemplars {
		return
	}
	s.exemplars = append(s.exemplars, e)
}

// takeExemplars returns the exemplars of a series and forgets them: each is
// exported once.
func (s *series) takeExemplars() []exemplar {
	taken := s.exemplars
	s.exemplars = nil
	return taken
}
