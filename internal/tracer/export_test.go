package tracer

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// OnlyFilesUnder keeps the tracer from probing libraries outside a directory,
// so that what else uses verbs on the machine does not show in a test's counts.
func OnlyFilesUnder(cfg Config, dir string) Config {
	cfg.takesFile = func(path string) bool { return strings.HasPrefix(path, dir+"/") }
	return cfg
}

// DriversByDevice finds the drivers of kernel verbs by their devices, as those
// whose names are not known.
func DriversByDevice(cfg Config) Config {
	cfg.namedDrivers = []driver{}
	return cfg
}

// NamedFunctions are the functions that a driver is known to have, by its module.
func NamedFunctions(module string) []string {
	for _, d := range knownDrivers {
		if d.module == module {
			return (&probedDriver{driver: d}).names()
		}
	}
	return nil
}

// DriverFunctions are the functions of a driver that are probed.
func DriverFunctions(t *Tracer, module string) []string {
	t.kernel.mu.RLock()
	defer t.kernel.mu.RUnlock()
	if d := t.kernel.drivers[module]; d != nil {
		return d.names()
	}
	return nil
}

// ReportsEveryOne reports whether every completion is delivered, however fast.
func ReportsEveryOne(t *Tracer) bool { return t.cfg.Threshold == 0 }

// EvidenceEvery looks at empty polls more often than is good for a poller.
func EvidenceEvery(cfg Config, every time.Duration) Config {
	cfg.evidenceEvery = every
	return cfg
}

// InterruptsFor watches interrupts for so long after something was slow.
func InterruptsFor(cfg Config, lasting time.Duration) Config {
	cfg.interruptsTime = lasting
	return cfg
}

// BeSlow has interrupts watched as if a completion had been slow.
func BeSlow(t *Tracer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.side.interrupts.turn(time.Now(), true)
}

// Interrupts are the probes on interrupts that stand, and when the programs were told
// that they all do; 0 when they do not.
func Interrupts(t *Tracer) (probes int, since uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err = t.side.interrupts.since.Get(&since)
	return len(t.side.interrupts.links), since, err
}

// LearnEvery learns a level of what is usual in so short a time.
func LearnEvery(cfg Config, window time.Duration) Config {
	cfg.learningWindow = window
	return cfg
}

// Learn looks at what is usual, whenever it did so last.
func Learn(t *Tracer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.baselines.next = 0
	now, err := monotonic()
	return errors.Join(err, t.learn(now))
}

// KnowsRate reports whether the kernel side was told of the rate of a device.
func KnowsRate(t *Tracer, name string) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(*t.devices.names.Load(), name)
	if i < 0 {
		return false, nil
	}
	device, err := t.side.devices.load(uint32(i))
	return device.NsPerGib != 0, err
}

// FillKinds leaves no room for a kind of requests, and returns how many there are.
func FillKinds(t *Tracer) (n uint32, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for slot := range t.side.baselines.length {
		err = errors.Join(err, t.side.baselines.store(slot, &bpf.TrackerBaseline{Kind: 1 + uint64(slot)}))
	}
	return t.side.baselines.length, err
}

// Kind is a kind of requests whose durations the kernel side counts.
type Kind struct {
	Peer      uint32
	Operation string
	SizeClass uint8
}

// Kinds are those of all devices, with the number of their requests.
func Kinds(t *Tracer) map[Kind]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	kinds := map[Kind]uint64{}
	for slot := range t.side.baselines.length {
		counts, err := t.side.baselines.load(slot)
		if err != nil || counts.Kind == 0 {
			continue
		}
		operation := verbs.Operation(counts.Kind >> 8)
		kind := Kind{Peer: uint32(counts.Kind >> 32), Operation: operation.String(), SizeClass: uint8(counts.Kind)}
		for _, n := range counts.Requests {
			kinds[kind] += uint64(n)
		}
	}
	return kinds
}

// HighestLimit is the highest of the limits that were learned, 0 without any.
func HighestLimit(t *Tracer) (highest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, limit := range t.baselines.learner.Limits() {
		highest = max(highest, limit)
	}
	return highest
}

// Suspect makes completions of every library seem not to have added up, so that
// their completion sites are compared once more.
func Suspect(t *Tracer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.libraries.attachments {
		library, err := t.side.libraries.load(a.cookie)
		if err != nil {
			return err
		}
		if err := t.side.libraries.store64(a.cookie, unsafe.Offsetof(library.Suspicions), library.Suspicions+1); err != nil {
			return err
		}
	}
	return nil
}

// Failures are how often the completion sites of a library were suspected, as far as
// that was acted on.
func Failures(t *Tracer, path string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.libraries.attachments {
		if a.file.DisplayPath != path {
			continue
		}
		for _, f := range a.polls {
			n += f.ladder.failures
		}
	}
	return n
}

// CloseWindows ends the windows of all libraries, and keeps the kernel from letting
// go of one of the probes of each until it is released.
func CloseWindows(t *Tracer) (release func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	released := make(chan struct{})
	for _, a := range t.libraries.attachments {
		if len(a.polls) != 0 {
			a.links = append(a.links, heldLink{released: released})
			err = errors.Join(err, t.closeWindow(a))
		}
	}
	return func() { close(released) }, err
}

// FreeCookies are what is left for the probes of more libraries.
func FreeCookies(t *Tracer) []uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.libraries.cookies)
}

// Duplicates are the files that are not probed because they are through another path.
func Duplicates(t *Tracer) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.libraries.duplicates)
}

// TrustsSites reports whether no post failed without passing a site.
func TrustsSites(t *Tracer) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.libraries.attachments {
		library, err := t.side.libraries.load(a.cookie)
		if err != nil {
			return false, err
		}
		for _, f := range a.posts {
			if f.sites == nil || library.Unmarked[f.index] != 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

// ClockProven reports whether the clock of a device is calibrated.
func ClockProven(t *Tracer) bool {
	t.stamps.mu.Lock()
	defer t.stamps.mu.Unlock()
	for _, clock := range t.stamps.clocks {
		if clock.proven {
			return true
		}
	}
	return false
}

// DigestedKinds are the kinds of objects whose functions the kernel side has told
// of. An error says that it digests them otherwise than user space.
func DigestedKinds(t *Tracer) (map[bpf.TrackerExtendedKind]bool, error) {
	kinds := map[bpf.TrackerExtendedKind]bool{}
	var key bpf.TrackerExtendedKey
	var set bpf.TrackerExtendedSet
	entries := t.side.maps.ExtendedSets.Iterate()
	for entries.Next(&key, &set) {
		if digest := digestPointers(key.Kind, set.Pointers[:]); digest != key.Digest {
			return nil, fmt.Errorf("%#x of kind %d: the digest is %#x there and %#x here", set.Pointers, key.Kind, key.Digest, digest)
		}
		kinds[bpf.TrackerExtendedKind(key.Kind)] = true
	}
	return kinds, entries.Err()
}

// ExhaustDevices leaves no index for the names of devices that processes have.
func ExhaustDevices(t *Tracer) error {
	return LeaveDevices(t, 0)
}

// LeaveDevices leaves so many indexes for the names of devices that processes have.
func LeaveDevices(t *Tracer, n int) error {
	var taken []uint32
	for {
		var index uint32
		if err := t.side.maps.FreeDevices.LookupAndDelete(nil, &index); errors.Is(err, ebpf.ErrKeyNotExist) {
			break
		} else if err != nil {
			return err
		}
		taken = append(taken, index)
	}
	for _, index := range taken[:n] {
		if err := t.side.freeDevice(index); err != nil {
			return err
		}
	}
	return nil
}

// FreeDevices is how many indexes are left for the names of devices that processes have.
func FreeDevices(t *Tracer) (n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		var index uint32
		err := t.side.maps.FreeDevices.LookupAndDelete(nil, &index)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			break
		}
		if err != nil {
			return 0, err
		}
		defer func() { _ = t.side.freeDevice(index) }()
		n++
	}
	return n, nil
}

// CountLate counts completions on a device as a program does that found its index
// before it was given up.
func CountLate(t *Tracer, device string, n uint64) error {
	i := slices.Index(*t.devices.names.Load(), device)
	if i < 0 {
		return fmt.Errorf("the device %s has no index", device)
	}
	key := bpf.TrackerSeriesKey{Tgid: uint32(os.Getpid()), Device: uint16(i)}
	return t.side.maps.Aggregates.Put(&key, &bpf.TrackerSeries{Completions: n})
}

// DeviceNames are the names of the devices that have an index.
func DeviceNames(t *Tracer) (names []string) {
	for _, name := range *t.devices.names.Load() {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// WithDevicesResting lets the indexes of devices be used again after shorter times.
func WithDevicesResting(cfg Config, unused, retired time.Duration) Config {
	cfg.devicesUnused, cfg.devicesRetired = unused, retired
	return cfg
}

// EndsOfSRQs are the reasons for which Shared Receive Queues ended whose slots were
// not recycled yet, "" for those that are in use.
func EndsOfSRQs(t *Tracer) (reasons []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err = t.side.forEachQueue(func(_ uint32, q *bpf.TrackerQueue) error {
		if q.Key.QpNum == srqNumber {
			reasons = append(reasons, endNames[q.End])
		}
		return nil
	})
	return reasons, err
}

// MapSize is the memory of a map as estimated and as the kernel tells.
type MapSize struct{ Estimated, Told uint64 }

// MapSizes are those of all maps by name; of one that grows the kernel tells
// what it takes now.
func MapSizes(t *Tracer) (map[string]MapSize, error) {
	spec, err := bpf.LoadTracker()
	if err != nil {
		return nil, err
	}
	core, err := bpf.LoadResources()
	if err != nil {
		return nil, err
	}
	sizes := map[string]MapSize{}
	err = addMapSizes(sizes, t.side.allMaps, spec)
	if r := t.resources.side; r != nil {
		// Those of the compiler, such as .bss, have the same names in both.
		err = errors.Join(err, addMapSizes(sizes, ownMaps(r.collection.Maps, t.resources.tracker.allMaps), core))
	}
	return sizes, err
}

func addMapSizes(sizes map[string]MapSize, loaded map[string]*ebpf.Map, spec *ebpf.CollectionSpec) error {
	for name, m := range loaded {
		declared := spec.Maps[name]
		info, err := m.Info()
		if err != nil {
			return err
		}
		told, ok := info.Memlock()
		if !ok || declared == nil {
			continue
		}
		declared.MaxEntries = m.MaxEntries()
		sizes[name] = MapSize{Estimated: estimateBytes(declared, ebpf.MustPossibleCPU()), Told: told}
	}
	return nil
}

// Program is one of those that are loaded from the start on, by its name.
func Program(t *Tracer, name string) *ebpf.Program { return t.side.collection.Programs[name] }

// Links are the probes that are in place.
func Links(t *Tracer) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.side.system) + len(t.side.interrupts.links)
	for _, a := range t.libraries.attachments {
		n += a.count()
	}
	return n
}

// Freed reports whether the maps are.
func Freed(t *Tracer) bool { return t.side.maps.Processes.FD() < 0 }

// IsLeft waits until no probe stands in the file of that path any more, and reports
// whether that came about in time.
func IsLeft(t *Tracer, path string, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if t.isLeft(path) {
			return true
		}
	}
	return false
}

func (t *Tracer) isLeft(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.libraries.attachments {
		if a.file.DisplayPath == path {
			return false
		}
	}
	return !slices.ContainsFunc(t.libraries.leaving, func(a *attachment) bool { return a.file.DisplayPath == path && a.closer.busy() })
}

// Looks reports whether the entry of a poll_cq is probed beside its sites at
// present.
func Looks(t *Tracer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.libraries.attachments {
		if a.gathersEvidence() {
			return true
		}
	}
	return false
}

// Schedules counts the threads that are watched, and the schedules that none has.
func Schedules(t *Tracer) (watched, free int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var tid, slot uint32
	entries := t.side.maps.WatchedThreads.Iterate()
	for entries.Next(&tid, &slot) {
		watched++
	}
	var slots []uint32
	for t.side.maps.FreeSchedules.LookupAndDelete(nil, &slot) == nil {
		slots = append(slots, slot)
	}
	err = entries.Err()
	for _, slot := range slots {
		err = errors.Join(err, t.side.maps.FreeSchedules.Update(nil, slot, ebpf.UpdateAny))
	}
	return watched, len(slots), err
}
