package tracer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// searchInterval is how often /proc is looked through where the kernel does
// not tell of new files.
const searchInterval = 10 * time.Second

// probeEverything probes the libraries that are installed, and those that any
// process uses.
func (t *Tracer) probeEverything() error {
	installed, err := t.finder.Installed(t.cfg.Root)
	if err != nil {
		t.log.Warn("not every installed verbs library was found", "error", err)
	}
	if err := t.probe(installed); err != nil {
		return err
	}
	used, errs := t.finder.All()
	for _, err := range errs {
		t.log.Debug("a process was not looked into", "error", err)
	}
	return t.probe(used)
}

// probe attaches to the files that are not probed yet. A file that cannot be
// probed is logged once; only a missing capability, which would hit every
// file, is an error.
func (t *Tracer) probe(files []provider.File) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	for _, file := range files {
		if t.attachments[file.ID] != nil || t.refused[file.ID] {
			continue
		}
		open, err := t.finder.Open(file)
		if err != nil {
			// Its process has ended. Another one that uses it will be told of.
			t.missed.Add(1)
			t.log.Debug("a verbs library is out of reach", "library", file.DisplayPath, "error", err)
			continue
		}
		err = t.probeFile(file, open)
		_ = open.Close()
		if denied := new(CapabilityError); errors.As(err, &denied) {
			return err
		}
		if err != nil {
			t.refused[file.ID] = true
			t.log.Warn("a verbs library is not traced", "library", file.DisplayPath, "error", err)
		}
	}
	return nil
}

func (t *Tracer) probeFile(file provider.File, open *os.File) error {
	if t.nextCookie >= t.side.libraries.length {
		return fmt.Errorf("more than %d libraries", t.side.libraries.length)
	}
	cookie := t.nextCookie
	t.nextCookie++
	a, err := t.side.attach(file, open, cookie, t.kind)
	if err != nil {
		return err
	}
	now, err := monotonic()
	if err != nil {
		return errors.Join(err, a.close())
	}
	if err := t.side.libraries.store64(cookie, unsafe.Offsetof(bpf.TrackerLibrary{}.AttachedNs), now); err != nil {
		return errors.Join(err, a.close())
	}
	t.attachments[file.ID] = a
	t.log.Info("probing", "library", file.DisplayPath, "provider", file.Library.Name, "functions", len(file.Library.Targets), "links", len(a.links))
	return nil
}

// dropDuplicates detaches probes on a file that is probed through another path
// as well.
func (t *Tracer) dropDuplicates() error {
	for id, a := range t.attachments {
		library, err := t.side.libraries.load(a.cookie)
		if err != nil {
			return err
		}
		if library.Duplicates == 0 || library.AttachedNs == 0 {
			continue
		}
		if err := t.side.libraries.store64(a.cookie, unsafe.Offsetof(library.AttachedNs), 0); err != nil {
			return err
		}
		delete(t.attachments, id)
		t.refused[id] = true
		t.log.Info("the same file is probed through another path", "library", a.file.DisplayPath)
		if err := a.close(); err != nil {
			return fmt.Errorf("detaching from %s: %w", a.file.DisplayPath, err)
		}
		return nil // One at a time: the other probe may have counted some too.
	}
	return nil
}

func (t *Tracer) readControl(ctx context.Context, reader *ringbuf.Reader) {
	err := readRecords(ctx, reader, func(raw []byte) {
		event, err := decodeControl(raw)
		if err != nil {
			t.undecodable.Add(1)
			return
		}
		if err := t.control(event); err != nil {
			t.log.Warn("a control event was not handled", "error", err)
		}
	})
	if err != nil {
		t.log.Error("reading control events ended", "error", err)
	}
}

func (t *Tracer) control(event bpf.TrackerControlEvent) error {
	id := verbs.ProcessID{TGID: event.Tgid, Incarnation: event.Incarnation}
	switch bpf.TrackerControlKind(event.Kind) {
	case bpf.TrackerControlKindCONTROL_NEW_FILE, bpf.TrackerControlKindCONTROL_NEW_CONTEXT:
		return t.lookInto(event.Tgid)
	case bpf.TrackerControlKindCONTROL_NEW_PROCESS:
		return t.admit(id)
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

// lookInto probes the verbs libraries of one process that are not known yet. A
// process that asks again and again is looked into once a second.
func (t *Tracer) lookInto(tgid uint32) error {
	t.mu.Lock()
	_, recently := t.looked[tgid]
	t.looked[tgid] = recently
	t.mu.Unlock()
	if recently {
		return nil
	}
	return t.lookNow(tgid)
}

// lookAgain looks into the processes that asked more than once since the last
// scan. It is called with mu held.
func (t *Tracer) lookAgain() {
	for tgid, again := range t.looked {
		delete(t.looked, tgid)
		if !again {
			continue
		}
		t.run(func() {
			if err := t.lookNow(tgid); err != nil {
				t.log.Warn("probing new libraries failed", "error", err)
			}
		})
	}
}

func (t *Tracer) lookNow(tgid uint32) error {
	files, err := t.finder.Process(int(tgid))
	if err != nil {
		t.log.Debug("a process was not looked into", "pid", tgid, "error", err)
	}
	return t.probe(files)
}

// admit decides about a process that has its first queue.
func (t *Tracer) admit(id verbs.ProcessID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.devices.refresh(); err != nil {
		return err
	}
	if t.cfg.TakesProcess(int(id.TGID)) {
		return nil
	}
	var process bpf.TrackerProcess
	if err := t.side.maps.Processes.Lookup(id.TGID, &process); err != nil || process.Incarnation != id.Incarnation {
		return nil // It is gone.
	}
	process.Ignored = 1
	if err := t.side.maps.Processes.Put(id.TGID, &process); err != nil {
		return fmt.Errorf("excluding process %d: %w", id.TGID, err)
	}
	now, err := monotonic()
	if err != nil {
		return err
	}
	return t.side.endQueues(now, bpf.TrackerQueueEndEND_RESET, func(key *bpf.TrackerQueueKey) bool {
		return key.Tgid == id.TGID && key.Incarnation == id.Incarnation
	})
}

// endBeforeExec ends what belongs to the program that a process ran before.
func (t *Tracer) endBeforeExec(now uint64, id verbs.ProcessID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var known bpf.TrackerProcess
	if err := t.side.maps.Processes.Lookup(id.TGID, &known); err != nil || known.Incarnation == id.Incarnation {
		return nil
	}
	before := verbs.ProcessID{TGID: id.TGID, Incarnation: known.Incarnation}
	return t.endProcess(now, before, bpf.TrackerQueueEndEND_EXEC)
}

func (t *Tracer) searchRegularly(ctx context.Context) {
	ticker := time.NewTicker(searchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			used, _ := t.finder.All()
			if err := t.probe(used); err != nil {
				t.log.Warn("probing new libraries failed", "error", err)
			}
		}
	}
}
