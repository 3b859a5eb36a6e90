package rdmareceiver

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// eventQueue is how many windows of events may wait for a pipeline.
	eventQueue = 32
	// asyncQueue is how many asynchronous events may wait to be named.
	asyncQueue = 128
	// metricsQueue is how many intervals of metrics may wait.
	metricsQueue = 2
	// maxPendingExemplars bounds the exemplars that wait for a collection.
	maxPendingExemplars = 1024
)

// session is one run of the engine: it reads what the engine delivers, chooses,
// names and hands on.
//
//	engine ─ read ─ window ─ dispatch ─ outbox ─ traces, logs
//	engine ─ collect ───────────────── outbox ─ metrics
//	devices ─ watch ─┘
type session struct {
	cfg        *Config
	engine     engine
	host       host
	in         surroundings
	pipelines  *pipelines
	self       *selfTelemetry
	status     *statusBoard
	logger     *zap.Logger
	readClocks func() (clockReading, error)
	ids        idSource

	clock      wallClock
	selector   *selector
	floors     *floorSetter
	aggregator *aggregator
	emitter    *metricsEmitter
	// devices and deviceEmitter are nil where the host has no such source.
	devices       *deviceWatch
	deviceEmitter *deviceEmitter

	windows chan window
	asyncs  chan verbs.AsyncEvent
	traces  *outbox[[]slowEvent]
	logs    *outbox[logBatch]
	metrics *outbox[metricBatch]
	endings endings

	mu        sync.Mutex
	exemplars []pendingExemplar
}

// window is what was chosen for export in one selection window.
type window struct {
	slow  []verbs.Completion
	stuck []verbs.Stuck
}

type pendingExemplar struct {
	key      seriesKey
	exemplar exemplar
}

// prepare makes the parts that depend on one another.
func (s *session) prepare(errnoName func(uint32) string) error {
	if err := s.refreshClock(); err != nil {
		return err
	}
	s.ids = newIDs()
	s.floors = newFloorSetter(s.engine.SetFloor)
	s.selector = newSelector(s.cfg.MaxExportedPerSecond, s.floors.want, time.Now())
	s.aggregator = newAggregator(s.cfg, s.identify, errnoName, s.now())
	s.windows = make(chan window, eventQueue)
	s.asyncs = make(chan verbs.AsyncEvent, asyncQueue)
	s.traces = newOutbox(eventQueue, func(ctx context.Context, events []slowEvent) error {
		return s.pipelines.sendTraces(ctx, events, s.in)
	}, s.settleTraces)
	s.logs = newOutbox(eventQueue, func(ctx context.Context, batch logBatch) error {
		return s.pipelines.sendLogs(ctx, batch, s.in)
	}, s.settleLogs)
	s.endings = endings{most: s.cfg.MaxSeries}
	s.metrics = newOutbox(metricsQueue, func(ctx context.Context, batch metricBatch) error {
		return s.pipelines.sendMetrics(ctx, batch.metrics)
	}, s.settleMetrics)
	return nil
}

// newIDs seeds a generator of ids from the operating system's randomness.
func newIDs() idSource {
	var seed [32]byte
	// Read never fails: the program ends instead.
	_, _ = crand.Read(seed[:])
	return rand.NewChaCha8(seed)
}

// run works until stop ends, then brings out what is left. When deliver ends,
// what the pipelines have not taken is given up.
func (s *session) run(stop, deliver context.Context) {
	var reading, collecting, watching, delivering sync.WaitGroup
	delivering.Go(func() { s.traces.run(deliver) })
	delivering.Go(func() { s.logs.run(deliver) })
	delivering.Go(func() { s.metrics.run(deliver) })
	reading.Go(s.dispatch)
	reading.Go(s.dispatchAsync)
	reading.Go(s.floors.run)
	reading.Go(s.read)
	collecting.Go(func() { s.collectRegularly(stop) })
	if s.devices != nil && s.pipelines.metrics.wanted {
		watching.Go(func() { s.devices.run(stop) })
	}
	if s.host.listQueuePairs != nil {
		watching.Go(s.host.listQueuePairs)
	}

	<-stop.Done()
	collecting.Wait()
	s.metrics.close()
	// Closing the engine ends its channels, and with them reading.
	if err := s.engine.Close(); err != nil {
		s.logger.Warn("Closing the tracer failed.", zap.Error(err))
	}
	reading.Wait()
	s.traces.close()
	s.logs.close()
	delivering.Wait()
	// Last: what asks a device may wait for its firmware, and what has come in must
	// not wait for that.
	watching.Wait()
}

// read empties the channels of the engine. It does nothing that can wait.
func (s *session) read() {
	defer close(s.windows)
	defer close(s.asyncs)
	defer s.floors.close()
	tick := time.NewTicker(selectionWindow)
	defer tick.Stop()
	completions, stuck, async := s.engine.Completions(), s.engine.Stuck(), s.engine.Async()
	var pending []verbs.Stuck
	told := 0
	for completions != nil || stuck != nil || async != nil {
		select {
		case c, ok := <-completions:
			if !ok {
				completions = nil
				continue
			}
			s.host.processes.Capture(c.Queue.Process, "")
			s.selector.offer(c)
		case u, ok := <-stuck:
			if !ok {
				stuck = nil
				continue
			}
			pending = s.keepStuck(pending, u)
		case e, ok := <-async:
			if !ok {
				async = nil
				continue
			}
			told++
			s.tell(e, told)
		case <-tick.C:
			s.endWindow(pending)
			pending, told = nil, 0
		}
	}
	s.endWindow(pending)
}

// keepStuck keeps as many stuck sends a window as a burst of spans: when a whole
// job hangs, a few of its requests tell as much as all.
func (s *session) keepStuck(pending []verbs.Stuck, u verbs.Stuck) []verbs.Stuck {
	if !s.wantsStuckLogs() {
		return nil
	}
	s.host.processes.Capture(u.Queue.Process, "")
	if len(pending) >= s.selector.burst {
		s.self.countEvents("logs", 1, outcomeRateLimited)
		return pending
	}
	return append(pending, u)
}

// tell passes an asynchronous event on at once. Of the events in its window it
// has this number; those over a burst of spans are counted.
func (s *session) tell(e verbs.AsyncEvent, number int) {
	switch {
	case !s.wantsAsyncLogs():
	case number > s.selector.burst:
		s.self.countEvents("logs", 1, outcomeRateLimited)
	default:
		if e.Process.TGID != 0 {
			s.host.processes.Capture(e.Process, "")
		}
		select {
		case s.asyncs <- e:
		default:
			s.self.countEvents("logs", 1, outcomeQueueFull)
		}
	}
}

// endWindow chooses what to export and passes it on.
func (s *session) endWindow(stuck []verbs.Stuck) {
	if err := s.refreshClock(); err != nil {
		s.logger.Warn("The clocks could not be read; times are converted with the reading before.", zap.Error(err))
	}
	slow, left := s.selector.flush(time.Now())
	s.countEvents(left, outcomeRateLimited)
	s.self.keepFloors(s.selector.floors())
	if len(slow) == 0 && len(stuck) == 0 {
		return
	}
	select {
	case s.windows <- window{slow: slow, stuck: stuck}:
	default:
		s.countEvents(len(slow), outcomeQueueFull)
		s.self.countEvents("logs", len(stuck), outcomeQueueFull)
	}
}

// countEvents counts slow completions for every signal that would have had them.
func (s *session) countEvents(n int, o outcome) {
	if s.pipelines.traces.wanted {
		s.self.countEvents("traces", n, o)
	}
	if s.wantsSlowLogs() {
		s.self.countEvents("logs", n, o)
	}
}

// dispatch names the processes, which may take a moment, and fills the outboxes.
func (s *session) dispatch() {
	for w := range s.windows {
		events := make([]slowEvent, 0, len(w.slow))
		for _, c := range w.slow {
			who := s.identify(c.Queue.Process)
			events = append(events, newSlowEvent(c, who, &s.clock, s.cfg, s.ids))
		}
		if s.pipelines.traces.wanted && len(events) > 0 {
			s.traces.put(events)
		}
		if batch := s.logsOf(events, w.stuck); batch.len() > 0 {
			s.logs.put(batch)
		}
	}
}

// dispatchAsync names the processes of asynchronous events, one by one: nothing
// waits for the end of a window.
func (s *session) dispatchAsync() {
	for a := range s.asyncs {
		e := asyncEvent{event: a, happened: s.clock.at(a.Monotonic)}
		if a.Process.TGID != 0 {
			e.process = s.identify(a.Process)
		}
		s.logs.put(logBatch{async: []asyncEvent{e}})
	}
}

func (s *session) logsOf(slow []slowEvent, stuck []verbs.Stuck) logBatch {
	var batch logBatch
	if s.wantsSlowLogs() {
		batch.slow = slow
	}
	for _, u := range stuck {
		batch.stuck = append(batch.stuck, stuckEvent{
			stuck: u, process: s.identify(u.Queue.Process), found: s.clock.at(u.Posted + uint64(u.Age)),
		})
	}
	return batch
}

// wantsSlowLogs is false while spans say the same, unless it is asked for.
func (s *session) wantsSlowLogs() bool {
	if !s.pipelines.logs.wanted || !s.cfg.Events.RdmaWqeSlow.Enabled {
		return false
	}
	return s.cfg.SlowLogs || !s.pipelines.traces.wanted
}

func (s *session) wantsStuckLogs() bool {
	return s.pipelines.logs.wanted && s.cfg.Events.RdmaWqeStuck.Enabled
}

func (s *session) wantsAsyncLogs() bool {
	return s.pipelines.logs.wanted && s.cfg.Events.RdmaAsyncEvent.Enabled
}

// collectRegularly collects every interval, and once more at the end.
func (s *session) collectRegularly(stop context.Context) {
	tick := time.NewTicker(s.cfg.CollectionInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.collect()
		case <-stop.Done():
			s.collect()
			return
		}
	}
}

func (s *session) collect() {
	snap, err := s.engine.Snapshot()
	s.status.reportHealth(cmp.Or(err, s.engine.Impaired()))
	if err != nil {
		s.logger.Warn("The counters of the tracer could not be read; they are read again at the next collection.", zap.Error(err))
		return
	}
	if s.pipelines.metrics.wanted {
		s.exportMetrics(&snap)
	}
	s.self.keep(&snap, len(s.aggregator.series))
}

func (s *session) exportMetrics(snap *verbs.Snapshot) {
	now := s.clock.at(snap.Monotonic)
	ended, owners := s.aggregator.add(snap, now)
	ended = s.endings.add(ended, owners, s.aggregator.series)
	for _, e := range s.takeExemplars() {
		s.aggregator.addExemplar(e.key, e.exemplar)
	}
	batch := metricBatch{metrics: s.emitter.emit(s.aggregator, ended, owners, now), ended: ended, owners: owners}
	if s.devices != nil {
		batch.deviceEnds = s.deviceEmitter.emit(batch.metrics, s.devices.latest(), s.aggregator.transmitted)
	}
	if batch.metrics.DataPointCount() > 0 {
		s.metrics.put(batch)
	}
}

func (s *session) settleTraces(events []slowEvent, o outcome) {
	s.self.countEvents("traces", len(events), o)
	if o != outcomeExported {
		return
	}
	s.recordDelays(events)
	s.keepExemplars(events)
}

func (s *session) settleLogs(batch logBatch, o outcome) {
	s.self.countEvents("logs", batch.len(), o)
	if o == outcomeExported {
		s.recordDelays(batch.slow)
	}
}

func (s *session) settleMetrics(batch metricBatch, o outcome) {
	if o != outcomeExported {
		s.self.countDroppedMetrics(o)
		s.endings.keep(batch)
		if s.devices != nil {
			s.deviceEmitter.ends.keep(batch.deviceEnds)
		}
	}
}

func (s *session) recordDelays(events []slowEvent) {
	now := s.now()
	for i := range events {
		s.self.recordDelay(now.AsTime().Sub(events[i].end.AsTime()))
	}
}

// keepExemplars remembers exported spans for the histogram: only they are
// exemplars, because a trace id that leads nowhere is worse than none.
func (s *session) keepExemplars(events []slowEvent) {
	if !s.pipelines.metrics.wanted {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range events {
		if len(s.exemplars) < maxPendingExemplars {
			s.exemplars = append(s.exemplars, exemplarOf(&events[i], s.aggregator.breakdown))
		}
	}
}

func exemplarOf(e *slowEvent, by breakdown) pendingExemplar {
	c := &e.completion
	at := seriesKey{owner: by.ownerOf(c.Queue.Process, e.process), device: c.Device}
	return pendingExemplar{key: at.ofCompletions(wqeDuration, c.Operation, c.Status), exemplar: exemplar{
		seconds: secondsOf(c.Duration()), at: e.end, traceID: e.traceID, spanID: e.spanID,
	}}
}

func (s *session) takeExemplars() []pendingExemplar {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.exemplars
	s.exemplars = nil
	return taken
}

func (s *session) identify(id verbs.ProcessID) *identity {
	if id.InKernel() {
		return identityOfConsumer(s.engine.ConsumerName(id))
	}
	return identify(s.host.processes, id, s.logger)
}

func (s *session) refreshClock() error {
	reading, err := s.readClocks()
	if err != nil {
		return err
	}
	s.clock.add(reading)
	return nil
}

// now is the present wall time.
func (s *session) now() pcommon.Timestamp {
	reading, err := s.readClocks()
	if err != nil {
		return pcommon.NewTimestampFromTime(time.Now())
	}
	return pcommon.Timestamp(reading.real)
}
