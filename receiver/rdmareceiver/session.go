package rdmareceiver

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/incident"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// eventQueue is how many windows of events may wait for a pipeline.
	eventQueue = 32
	// judgingQueue is how many windows may wait to be judged. Each may have ten
	// megabytes of completions, and what waits for long is no longer worth it.
	judgingQueue = 8
	// asyncQueue is how many asynchronous events may wait to be named.
	asyncQueue = 128
	// metricsQueue is how many intervals of metrics may wait.
	metricsQueue = 2
	// snapshotQueue is how many snapshots may wait for the causes of what they count.
	snapshotQueue = 8
	// maxPendingExemplars bounds the exemplars that wait for a collection.
	maxPendingExemplars = 1024
)

// session is one run of the engine: it reads what the engine delivers, chooses,
// names and hands on.
//
//	engine ─ read ─ window ─ judge, dispatch ─ outbox ─ traces, logs
//	                              │ causes
//	engine ─ collect ─ snapshot ─ export ──── outbox ─ metrics
//	devices ─ watch ─┘
type session struct {
	cfg       *Config
	engine    engine
	host      host
	in        surroundings
	pipelines *pipelines
	self      *selfTelemetry
	status    *statusBoard
	holdup    *holdup
	shown     shown
	// gpus are those of the node, for who is shown it.
	gpus       []fabric.PCIDevice
	logger     *zap.Logger
	readClocks func() (clockReading, error)
	ids        idSource
	// causeTable is what slow work requests are judged by.
	causeTable []diagnose.Cause

	clock      wallClock
	selector   *selector
	holder     *holder
	judge      *judge
	causes     *attributions
	glances    glances
	nextGlance time.Time
	hangs      hangs
	idle       idleWatch
	quotas     quotas
	steals     steals
	idleStates idleStates
	accounting accounting
	events     eventLog
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
	// snapshots wait to be exported. settled is closed when the last window has been
	// judged.
	snapshots chan collected
	settled   chan struct{}
	// active has the incidents that are open.
	active atomic.Pointer[map[incident.Key]int]

	mu        sync.Mutex
	exemplars []pendingExemplar
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
	s.holder = newHolder()
	s.judge = newJudge(s.causeTable, s.cfg.PeerAddresses, s.ids)
	s.active.Store(&map[incident.Key]int{})
	s.quotas = quotas{read: s.host.throttling}
	s.steals = steals{read: s.host.stolen}
	s.idleStates = idleStates{read: s.host.idleStates}
	s.causes = newAttributions()
	s.snapshots = make(chan collected, snapshotQueue)
	s.settled = make(chan struct{})
	s.windows = make(chan window, judgingQueue)
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
	if s.pipelines.traces.wanted {
		s.self.expectDrops("traces")
	}
	if s.pipelines.logs.wanted {
		s.self.expectDrops("logs")
	}
	s.shown.open(s)
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
	var reading, collecting, exporting, watching, traces, logs, metrics sync.WaitGroup
	traces.Go(func() { s.traces.run(deliver) })
	logs.Go(func() { s.logs.run(deliver) })
	metrics.Go(func() { s.metrics.run(deliver) })
	reading.Go(func() { s.dispatch(stop) })
	reading.Go(s.dispatchAsync)
	reading.Go(s.floors.run)
	reading.Go(func() { s.read(stop) })
	collecting.Go(func() { s.collectRegularly(stop) })
	exporting.Go(func() { s.exportSnapshots(deliver) })
	if s.devices != nil {
		watching.Go(func() { s.devices.run(stop) })
	}
	if s.host.listQueuePairs != nil {
		watching.Go(s.host.listQueuePairs)
	}

	<-stop.Done()
	s.await(&collecting, "the kernel, which is asked for what was counted")
	s.await(&exporting, "the last metrics to be made")
	s.metrics.close()
	s.holdup.waitFor("the kernel, which takes the probes off")
	// Closing the engine ends its channels, and with them reading.
	if err := s.engine.Close(); err != nil {
		s.logger.Warn("Closing the tracer failed.", zap.Error(err))
	}
	s.await(&reading, "the last events to be read, and the files of their processes in /proc")
	s.traces.close()
	s.logs.close()
	s.await(&traces, "the traces pipeline")
	s.await(&logs, "the logs pipeline")
	s.await(&metrics, "the metrics pipeline")
	// Last: what asks a device may wait for its firmware, and what has come in must
	// not wait for that.
	s.await(&watching, "a device, whose counters or queue pairs were asked for")
}

func (s *session) await(all *sync.WaitGroup, what string) {
	s.holdup.waitFor(what)
	all.Wait()
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

// countEvents counts slow completions for every signal that would have had them.
func (s *session) countEvents(n int, o outcome) {
	if s.pipelines.traces.wanted {
		s.self.countEvents("traces", n, o)
	}
	if s.wantsSlowLogs() {
		s.self.countEvents("logs", n, o)
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

func (s *session) wantsVerdictLogs() bool {
	return s.pipelines.logs.wanted && s.cfg.Events.RdmaVerdict.Enabled
}

func (s *session) wantsAsyncLogs() bool {
	return s.pipelines.logs.wanted && s.cfg.Events.RdmaAsyncEvent.Enabled
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

// monotonic is the present moment on CLOCK_MONOTONIC, in nanoseconds, or the last
// one that could be read.
func (s *session) monotonic() uint64 {
	reading, err := s.readClocks()
	if err != nil {
		return s.clock.latest()
	}
	return uint64(reading.monotonic)
}

// now is the present wall time.
func (s *session) now() pcommon.Timestamp {
	reading, err := s.readClocks()
	if err != nil {
		return pcommon.NewTimestampFromTime(time.Now())
	}
	return pcommon.Timestamp(reading.real)
}
