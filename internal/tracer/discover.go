package tracer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const (
	// searchInterval is how often all of /proc is looked through where the
	// kernel does not tell of new files, watchedInterval where it does: then
	// it is for what went by, and for libraries that nobody uses any more.
	searchInterval  = 10 * time.Second
	watchedInterval = time.Minute
	// lookAgainAfter is when a process is looked into for the second time.
	// The kernel side does not tell of it again before; a library that was
	// mapped just after the first look is found by the second.
	lookAgainAfter = 150 * time.Millisecond
	// mostLooks bounds how many processes are looked into at a time.
	mostLooks = 64
)

// probeEverything probes the libraries that are installed, and those that any
// process uses, unless the context ends first.
func (t *Tracer) probeEverything(ctx context.Context) error {
	probed := make(chan error, 1)
	t.look(func() { probed <- t.probeInstalledAndUsed(ctx) })
	select {
	case err := <-probed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("looking for verbs libraries: %w", ctx.Err())
	}
}

func (t *Tracer) probeInstalledAndUsed(ctx context.Context) error {
	installed, err := t.finder.Installed(t.cfg.Root)
	if err != nil && !t.denials.note(err) {
		t.log.Warn("not every installed verbs library was found", "error", err)
	}
	if err := t.probe(installed); err != nil {
		return err
	}
	_, err = t.search(ctx)
	return err
}

// search probes what all processes use, and says whether it saw all of them.
func (t *Tracer) search(ctx context.Context) (complete bool, err error) {
	used, errs := t.finder.All(ctx)
	for _, err := range errs {
		t.notLookedInto(err)
	}
	if err := t.probe(used); err != nil {
		return false, err
	}
	if len(errs) > 0 {
		return false, nil
	}
	return true, t.dropUnused(used)
}

func (t *Tracer) dropUnused(used []provider.File) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	dropped, err := t.libraries.dropUnused(used, time.Now())
	for _, a := range dropped {
		t.log.Info("no longer in use", "library", a.file.DisplayPath)
	}
	return err
}

// probe attaches to the files that are not probed yet. A file that cannot be
// probed is warned of once; only a missing capability, which would hit every
// file, is an error.
func (t *Tracer) probe(files []provider.File) error {
	for _, file := range files {
		for again := true; again; {
			left, err := t.probeFile(file)
			if err != nil {
				return err
			}
			if again = left != nil; again {
				left.closer.wait()
			}
		}
	}
	return nil
}

// probeFile attaches to a file that is not probed yet, unless the probes on what
// its inode held before are to be waited for first. It opens the file without the
// lock: that may take for ever.
func (t *Tracer) probeFile(file provider.File) (left *attachment, err error) {
	if !t.wants(file) {
		return nil, nil
	}
	open, err := t.finder.Open(file)
	if err != nil {
		// Most often its process has ended, and nothing is missed. The next
		// search finds it in another one.
		if !errors.Is(err, fs.ErrNotExist) {
			t.missed.Add(1)
		}
		t.notLookedInto(err, "library", file.DisplayPath)
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || !t.libraries.wants(file) {
		return nil, open.Close()
	}
	if left, err = t.libraries.vacate(file); left != nil || err != nil {
		return left, errors.Join(err, open.Close())
	}
	a, err := t.libraries.attach(file, open)
	if denied := new(CapabilityError); errors.As(err, &denied) {
		return nil, err
	}
	if err != nil {
		again := t.libraries.refuse(file.ID)
		if !again {
			t.missed.Add(1)
		}
		t.tellRefused(again, file, err)
		return nil, nil
	}
	// The name is in the message: a collector drops lines that are alike.
	t.log.Info("probing "+file.Library.Name, "library", file.DisplayPath, "provider", file.Library.Name, "functions", len(file.Library.Targets), "links", a.count())
	return nil, nil
}

// tellRefused tells of a file that could not be probed, unless it was told before.
// Of the libraries that are installed each is named, whatever processes bring along.
func (t *Tracer) tellRefused(again bool, file provider.File, err error) {
	const message = "a verbs library is not traced, and tried again later"
	switch {
	case again:
		t.log.Debug(message, "library", file.DisplayPath, "error", err)
	case file.PID == 0:
		t.log.Warn(message, "library", file.DisplayPath, "error", err)
	default:
		t.warnings.warn(time.Now(), message, "library", file.DisplayPath, "error", err)
	}
}

func (t *Tracer) wants(file provider.File) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closed && t.libraries.wants(file)
}

// dropDuplicates is called with mu held.
func (t *Tracer) dropDuplicates() error {
	dropped, err := t.libraries.dropDuplicates()
	for _, a := range dropped {
		t.log.Info("the same file is probed through another path", "library", a.file.DisplayPath)
	}
	return err
}

func (t *Tracer) readControl(ctx context.Context, reader *ringbuf.Reader) {
	err := readRecords(ctx, reader, func(raw []byte) {
		event, err := decodeControl(raw)
		if err != nil {
			t.undecodable.Add(1)
			return
		}
		if err := t.control(ctx, event); err != nil {
			t.log.Warn("a control event was not handled", "error", err)
		}
	})
	if err != nil {
		t.log.Error("reading control events ended", "error", err)
	}
}

func (t *Tracer) control(ctx context.Context, event bpf.TrackerControlEvent) error {
	id := verbs.ProcessID{TGID: event.Tgid, Incarnation: event.Incarnation}
	switch bpf.TrackerControlKind(event.Kind) {
	case bpf.TrackerControlKindCONTROL_NEW_FILE:
		// Most programs have nothing to do with RDMA. Of those that find no room
		// the next search finds the ones that still run.
		t.lookInto(ctx, event.Tgid)
		return nil
	case bpf.TrackerControlKindCONTROL_NEW_CONTEXT:
		if !t.lookInto(ctx, event.Tgid) {
			t.missed.Add(1)
		}
		t.foretellLater(id)
		return nil
	case bpf.TrackerControlKindCONTROL_NEW_FUNCTIONS:
		t.wakeExtended()
		return nil
	case bpf.TrackerControlKindCONTROL_NEW_PROCESS:
		t.decide(id, commName(event.Comm[:]))
		return nil
	case bpf.TrackerControlKindCONTROL_EXIT:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.endProcess(event.TimeNs, id, bpf.TrackerQueueEndEND_EXIT)
	case bpf.TrackerControlKindCONTROL_EXEC:
		return t.endBeforeExec(event.TimeNs, id)
	default:
		return fmt.Errorf("unknown control event %d", event.Kind)
	}
}

// lookInto probes the verbs libraries of one process that are not known yet:
// now, with every further event, and once more a little after the last. It does
// not hold up the control events. It is false when too many are looked into.
func (t *Tracer) lookInto(ctx context.Context, tgid uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if again, ok := t.looking[tgid]; ok {
		select {
		case again <- struct{}{}:
		default: // It was asked to already.
		}
		return true
	}
	if len(t.looking) >= mostLooks {
		return false
	}
	again := make(chan struct{}, 1)
	t.looking[tgid] = again
	t.look(func() { t.keepLooking(ctx, tgid, again) })
	return true
}

func (t *Tracer) keepLooking(ctx context.Context, tgid uint32, again <-chan struct{}) {
	for asked := true; asked; {
		t.lookNow(tgid)
		select {
		case <-again:
		case <-ctx.Done():
			return
		case <-time.After(lookAgainAfter):
			asked = false
		}
	}
	t.mu.Lock()
	delete(t.looking, tgid)
	t.mu.Unlock()
	t.lookNow(tgid)
}

func (t *Tracer) lookNow(tgid uint32) {
	files, err := t.finder.Process(int(tgid))
	if err != nil {
		t.notLookedInto(err, "pid", tgid)
	}
	if err := t.probe(files); err != nil {
		t.log.Warn("probing new libraries failed", "error", err)
	}
}

// decide says whether a process that has its first queue is traced. Who is asked
// reads /proc.
func (t *Tracer) decide(id verbs.ProcessID, name string) {
	if !id.InKernel() {
		t.cfg.NewProcess(id, name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.devices.refresh(); err != nil {
		t.log.Warn("a new device is not known", "error", err)
	}
	if t.closed || t.decided[id] {
		return
	}
	t.decided[id] = true
	t.look(func() {
		taken := t.takes(id)
		t.choices.keep(id, taken)
		if taken {
			return
		}
		if err := t.exclude(id); err != nil {
			t.log.Warn("a process was not excluded", "pid", id.TGID, "error", err)
		}
	})
}

func (t *Tracer) takes(id verbs.ProcessID) bool {
	if !id.InKernel() {
		return t.cfg.TakesProcess(int(id.TGID))
	}
	return t.cfg.TakesConsumer(t.ConsumerName(id))
}

func (t *Tracer) exclude(id verbs.ProcessID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	if err := t.side.maps.Excluded.Put(id.TGID, id.Incarnation); err != nil {
		return fmt.Errorf("telling the kernel side: %w", err)
	}
	now, err := monotonic()
	if err != nil {
		return err
	}
	return t.side.endQueues(now, bpf.TrackerQueueEndEND_RESET, func(q *bpf.TrackerQueue) bool { return processOf(&q.Key) == id })
}

// endBeforeExec ends what belongs to the program that a process ran before.
func (t *Tracer) endBeforeExec(now uint64, id verbs.ProcessID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var known bpf.TrackerProcess
	before := map[verbs.ProcessID]bool{}
	if err := t.side.maps.Processes.Lookup(id.TGID, &known); err == nil && known.Incarnation < id.Incarnation {
		before[verbs.ProcessID{TGID: id.TGID, Incarnation: known.Incarnation}] = true
	}
	// The new program may have made queues by now and be the known one; where
	// this comes late, so may one after it, whose incarnation is higher.
	err := t.side.forEachQueue(func(_ uint32, q *bpf.TrackerQueue) error {
		if q.EndedNs == 0 && q.Key.Tgid == id.TGID && q.Key.Incarnation < id.Incarnation {
			before[processOf(&q.Key)] = true
		}
		return nil
	})
	errs := []error{err}
	for process := range before {
		errs = append(errs, t.endProcess(now, process, bpf.TrackerQueueEndEND_EXEC))
	}
	return errors.Join(errs...)
}

func (t *Tracer) searchRegularly(ctx context.Context) {
	interval := searchInterval
	if t.side.watchesFiles {
		interval = watchedInterval
	}
	every(ctx, interval, func() {
		if _, err := t.search(ctx); err != nil {
			t.log.Warn("looking for verbs libraries failed", "error", err)
		}
	})
}
