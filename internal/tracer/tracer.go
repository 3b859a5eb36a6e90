package tracer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// scanInterval is how often the queues are looked through.
	scanInterval = time.Second
	// completionBuffer and stuckBuffer are how many values wait for a slow
	// consumer before the newest are dropped and counted.
	completionBuffer = 4096
	stuckBuffer      = 256
	// stuckAfter is the age from which an outstanding send is reported.
	stuckAfter = time.Second
)

var errClosed = errors.New("tracer: closed")

// Tracer is a running tracer. Its methods may be called from any goroutine.
type Tracer struct {
	cfg    Config
	log    *slog.Logger
	kind   linkKind
	side   *kernelSide
	finder *provider.Finder
	cache  *provider.Cache
	// self is the process of this collector as the kernel numbers it, 0 where that is
	// not known.
	self uint32
	// threads tells the names of threads.
	threads *process.Reader

	completions chan verbs.Completion
	stuck       chan verbs.Stuck
	async       chan verbs.AsyncEvent
	resources   *resources
	kernel      *kernelVerbs
	stamps      *cqeStamps
	baselines   *baselines
	peers       peers
	dropped     atomic.Uint64
	undecodable atomic.Uint64
	// undecided counts slow completions of processes of which it was not yet known
	// whether they are traced.
	undecided atomic.Uint64
	extended  chan struct{}
	missed    atomic.Uint64
	// hanging is what was told last of what holds up looks at processes.
	hanging atomic.Pointer[string]
	denials *denials
	// warnings are those that processes can provoke.
	warnings *warnings
	choices  choices
	meter    cpuMeter

	cancel context.CancelFunc
	// done is for the goroutines that come to an end by themselves.
	done    sync.WaitGroup
	lookers lookers

	// mu guards what follows.
	mu        sync.Mutex
	closed    bool
	libraries *libraries
	devices   *devices
	books     *ledger
	interval  uint32
	// ending are processes that ended and whose queues still rest, exited
	// those of which the next snapshot is the last one to tell.
	ending map[verbs.ProcessID]time.Time
	exited map[verbs.ProcessID]bool
	// ended are queues that the next snapshot tells of.
	ended endedQueues
	// decided are the processes that were asked about in TakesProcess.
	decided map[verbs.ProcessID]bool
	// registrants are the processes that registered memory; true are those that
	// are traced.
	registrants map[verbs.ProcessID]bool
	reported    map[stuckKey]bool
	// looking are the processes that are being looked into, with a way to ask
	// for one more look.
	looking    map[uint32]chan struct{}
	nextCQScan uint64
	// unforgotten says that processes ended since the last scan.
	unforgotten bool
	// agent and costTick belong to the governor.
	agent    agentShare
	costTick uint32
	nextIdle time.Time
}

// Start loads the programs, probes every verbs library that is installed or in
// use, and begins to trace. It returns once the probes are in place; where
// there is no RDMA yet it waits for it. Errors are *CapabilityError or
// *KernelError where those tell what is missing.
func Start(ctx context.Context, cfg Config) (*Tracer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	kind, err := preflight()
	if err != nil {
		return nil, err
	}
	if err := CheckPIDNamespace(cfg.Root); err != nil {
		return nil, err
	}
	held, err := HeldCapabilities("/proc/self/status")
	if err != nil {
		return nil, err
	}
	side, err := load(ctx, cfg, kind)
	if err != nil {
		return nil, err
	}
	cache := openCache(cfg)
	side.verdicts = provider.NewVerdicts(cache)
	writes, err := newWriteWatch()
	if err != nil {
		cfg.Logger.Warn("a library that is overwritten in place while it is probed will break programs", "error", err)
	}
	t := &Tracer{
		cfg:         cfg,
		log:         cfg.Logger,
		kind:        kind,
		side:        side,
		denials:     newDenials(cfg.Logger, held),
		warnings:    newWarnings(cfg.Logger),
		cache:       cache,
		self:        ownProcess(cfg.Root),
		threads:     process.NewReader(rooted(cfg.Root, "/proc")),
		completions: make(chan verbs.Completion, completionBuffer),
		stuck:       make(chan verbs.Stuck, stuckBuffer),
		async:       make(chan verbs.AsyncEvent, asyncBuffer),
		resources:   newResources(cfg, side),
		kernel:      newKernelVerbs(cfg, side),
		stamps:      newCQEStamps(cfg.Logger),
		baselines:   newBaselines(side, cfg),
		libraries:   newLibraries(side, kind, writes),
		books:       newLedger(),
		ending:      map[verbs.ProcessID]time.Time{},
		exited:      map[verbs.ProcessID]bool{},
		ended:       newEndedQueues(),
		decided:     map[verbs.ProcessID]bool{},
		registrants: map[verbs.ProcessID]bool{},
		reported:    map[stuckKey]bool{},
		looking:     map[uint32]chan struct{}{},
		extended:    make(chan struct{}, 1),
	}
	t.finder = provider.NewFinder(rooted(cfg.Root, "/proc")).WithFiles(cfg.takesFile).WithCache(cache).WithSpawn(t.look)
	t.devices = newDevices(side, cfg, newRates(cfg.Rate, t.refreshDevices))
	t.kernel.newLibrary, t.kernel.freeLibrary = t.newLibrary, t.freeLibrary
	if err := t.begin(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// rooted is a path below the host's root directory.
func rooted(root, path string) string {
	if root == "/" {
		return path
	}
	return root + path
}

func (t *Tracer) begin(ctx context.Context) error {
	if err := tryReturnProbe(t.side, t.kind); err != nil {
		return err
	}
	if err := t.calibrate(); err != nil {
		return err
	}
	if err := t.side.attachSystem(); err != nil {
		return attachError(err, t.kind)
	}
	// The background work outlives the context of the start.
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.cancel = cancel
	slow, err := newReader(t.side.maps.SlowEvents)
	if err != nil {
		return fmt.Errorf("opening the ring buffer of slow completions: %w", err)
	}
	control, err := newReader(t.side.maps.ControlEvents)
	if err != nil {
		return errors.Join(fmt.Errorf("opening the ring buffer of control events: %w", err), slow.Close())
	}
	t.run(func() { t.readSlow(background, slow) })
	t.run(func() { t.readControl(background, control) })
	if t.cfg.CQETimestamps {
		if err := t.followStamps(background); err != nil {
			return fmt.Errorf("opening the ring buffer of time stamps: %w", err)
		}
	}
	if t.libraries.writes != nil {
		t.run(t.followWrites)
	}
	t.resources.refresh(ctx)
	t.run(func() { t.watchCore(background) })
	t.look(func() { t.followExtended(background) })
	t.look(func() { t.followLinked(background) })

	if err := t.probeEverything(ctx); err != nil {
		return err
	}
	// What it takes to load the programs for drivers that are here is a part of
	// the start, and not of what tracing costs.
	t.kernel.refresh(ctx)
	t.run(func() { t.watchKernelVerbs(background) })
	now := time.Now()
	t.agent = newAgentShare(now, t.spent())
	t.run(func() { t.turnRegularly(background) })
	t.run(func() { t.scanRegularly(background) })
	t.look(func() { t.searchRegularly(background) })
	if !t.side.watchesFiles {
		t.log.Info("this kernel does not tell of new files: a verbs library unknown so far is found when a program that uses it starts, or by looking into /proc", "every", searchInterval.String())
	}
	return nil
}

// run starts a goroutine of the tracer's own, whose CPU time is counted.
func (t *Tracer) run(f func()) {
	t.done.Go(func() { t.meter.run(f) })
}

// every does some work again and again until the context ends.
func every(ctx context.Context, interval time.Duration, work func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			work()
		}
	}
}

// Completions delivers slow completions, the oldest first. When nobody reads,
// new ones are dropped and counted. It is closed by Close.
func (t *Tracer) Completions() <-chan verbs.Completion { return t.completions }

// Stuck delivers sends that have been outstanding for more than a second on a
// synced queue, each once. It is closed by Close.
func (t *Tracer) Stuck() <-chan verbs.Stuck { return t.stuck }

// SetFloor keeps slow completions of a device with less excess time than this
// from being delivered one by one; they are still counted. 0 delivers all.
func (t *Tracer) SetFloor(device string, excess time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.devices.floor[device] = excess
	if err := t.devices.refresh(); err != nil {
		t.log.Warn("the reporting floor was not changed", "device", device, "error", err)
	}
}

// refreshDevices tells the kernel side of rates that have changed.
func (t *Tracer) refreshDevices() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if err := t.devices.refresh(); err != nil {
		t.log.Warn("the rate of a device is not told to the kernel side", "error", err)
	}
}

// MapBytes is the memory of the BPF maps as the kernel accounts for it.
func (t *Tracer) MapBytes() uint64 {
	return memoryOfMaps(t.side.allMaps) + t.resources.mapBytes() + t.kernel.mapBytes()
}

func (t *Tracer) scanRegularly(ctx context.Context) {
	every(ctx, scanInterval, func() {
		if err := t.scan(); err != nil {
			t.log.Warn("looking through the queues failed", "error", err)
		}
		t.warnings.tellLeft(time.Now())
	})
}

// scan is what is done every second: know new devices, find stuck sends, give
// back what ended, learn what is usual.
func (t *Tracer) scan() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := monotonic()
	if err != nil {
		return err
	}
	errs := []error{
		t.devices.refresh(),
		t.endDead(now),
		t.forgetEnded(),
		t.side.recycle(now, t.books, func(q *bpf.TrackerQueue) { t.ended.recycled(q, t.describeEnded) }),
		t.reportStuck(now),
		t.forgetIdleCQs(now),
		t.dropDuplicates(),
		t.libraries.reap(),
		t.endDestroyed(now),
		t.decideAboutRegistrants(),
		t.tellPeers(now),
		t.learn(now),
	}
	t.decideAboutAll()
	for process, since := range t.ending {
		if time.Since(since) > quarantine+2*scanInterval {
			delete(t.ending, process)
			t.exited[process] = true
		}
	}
	return errors.Join(errs...)
}

// decideAboutAll makes up for control events that were lost. It is called with
// mu held, and leaves the deciding to the background.
func (t *Tracer) decideAboutAll() {
	var tgid uint32
	var process bpf.TrackerProcess
	entries := t.side.maps.Processes.Iterate()
	for entries.Next(&tgid, &process) {
		id := verbs.ProcessID{TGID: tgid, Incarnation: process.Incarnation}
		if !t.decided[id] {
			t.run(func() { t.decide(id, "") })
		}
	}
}

// endDead ends the queues of processes whose exit was not told.
func (t *Tracer) endDead(now uint64) error {
	known := map[verbs.ProcessID]bool{}
	var tgid uint32
	var process bpf.TrackerProcess
	entries := t.side.maps.Processes.Iterate()
	for entries.Next(&tgid, &process) {
		known[verbs.ProcessID{TGID: tgid, Incarnation: process.Incarnation}] = true
	}
	errs := []error{entries.Err(), t.side.forEachQueue(func(_ uint32, q *bpf.TrackerQueue) error {
		if q.EndedNs == 0 {
			known[processOf(&q.Key)] = true
		}
		return nil
	})}
	for id := range t.registrants {
		if _, ends := t.ending[id]; !ends && !t.exited[id] {
			known[id] = true
		}
	}
	current := map[uint32]uint64{}
	for id := range known {
		current[id.TGID] = max(current[id.TGID], id.Incarnation)
	}
	for id := range known {
		if id.InKernel() {
			continue // It stays, with or without queues.
		}
		if id.Incarnation < current[id.TGID] {
			// Another program, or process, has its place by now.
			errs = append(errs, t.endProcess(now, id, bpf.TrackerQueueEndEND_EXEC))
			continue
		}
		if isGone(t.cfg.Root, id.TGID) {
			errs = append(errs, t.endProcess(now, id, bpf.TrackerQueueEndEND_EXIT))
		}
	}
	return errors.Join(errs...)
}

// endDestroyed ends the queues of QPs of which the kernel alone told the end:
// those of static or renamed libraries.
func (t *Tracer) endDestroyed(now uint64) error {
	destroyed, err := t.resources.sweep(now)
	if len(destroyed) == 0 {
		return err
	}
	return errors.Join(err, t.side.endQueues(now, bpf.TrackerQueueEndEND_DESTROY, func(q *bpf.TrackerQueue) bool {
		qp, ok := destroyed[namedQP{t.devices.name(q.Device), q.Key.QpNum}]
		return ok && isOfDestroyed(q, &qp)
	}))
}

// isOfDestroyed says whether the queue is of the QP that was destroyed, and not of
// one that has its number by now.
func isOfDestroyed(q *bpf.TrackerQueue, qp *bpf.ResourcesKernelQp) bool {
	owner := verbs.ProcessID{TGID: qp.Tgid, Incarnation: qp.Incarnation}
	return processOf(&q.Key) == owner && q.ActivityNs < qp.EndedNs
}

// endProcess ends everything that belongs to one incarnation of a process.
func (t *Tracer) endProcess(now uint64, id verbs.ProcessID, reason bpf.TrackerQueueEnd) error {
	var known bpf.TrackerProcess
	if err := t.side.maps.Processes.Lookup(id.TGID, &known); err == nil && known.Incarnation == id.Incarnation {
		_ = t.side.maps.Processes.Delete(id.TGID)
	}
	var excluded uint64
	if err := t.side.maps.Excluded.Lookup(id.TGID, &excluded); err == nil && excluded == id.Incarnation {
		_ = t.side.maps.Excluded.Delete(id.TGID)
	}
	delete(t.decided, id)
	t.ending[id] = time.Now()
	t.unforgotten = true
	return t.side.endQueues(now, reason, func(q *bpf.TrackerQueue) bool { return processOf(&q.Key) == id })
}

// forgetEnded drops what else is known of the processes that ended since the
// last scan, in one pass over the maps for all of them.
func (t *Tracer) forgetEnded() error {
	if !t.unforgotten {
		return nil
	}
	t.unforgotten = false
	ended := func(tgid uint32, incarnation uint64) bool {
		_, ok := t.ending[verbs.ProcessID{TGID: tgid, Incarnation: incarnation}]
		return ok
	}
	var key bpf.TrackerQueueKey
	var seen uint64
	return errors.Join(
		t.side.forgetExtended(ended),
		t.side.forgetCQs(func(key *bpf.TrackerCqKey) bool { return ended(key.Tgid, key.Incarnation) }),
		deleteMatching(t.side.maps.UntrackedQueues, &key, &seen, func() bool { return ended(key.Tgid, key.Incarnation) }),
	)
}

func monotonic() (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("reading CLOCK_MONOTONIC: %w", err)
	}
	return uint64(now.Nano()), nil
}
