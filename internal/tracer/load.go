package tracer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// kernelSide is the loaded programs and maps.
type kernelSide struct {
	collection *ebpf.Collection
	maps       bpf.TrackerMaps
	allMaps    map[string]*ebpf.Map
	queues     *table[bpf.TrackerQueue]
	segments   *table[bpf.TrackerSegment]
	devices    *table[bpf.TrackerDevice]
	libraries  *table[bpf.TrackerLibrary]
	sites      *table[bpf.TrackerSite]
	functions  *table[bpf.TrackerPollFunction]
	baselines  *table[bpf.TrackerBaseline]
	// freeSites are the elements of sites that are not in use.
	freeSites []uint32
	// entryReturn leaves completion sites alone.
	entryReturn bool
	// verdicts tell which completion sites were compared before.
	verdicts *provider.Verdicts
	// evidenceEvery is the time between two looks at empty polls.
	evidenceEvery time.Duration
	// loading adds up what loading programs takes, now and later; later are those that
	// are not loaded yet.
	loading *cpuMeter
	later   laterPrograms
	// system are the probes that belong to no library and stand all the time,
	// interrupts those that do not.
	system     []link.Link
	interrupts *interrupts
	// interval and costTick are variables shared with the programs.
	interval, costTick *ebpf.Variable
	// watchesFiles says whether the probe on file mappings was loaded.
	watchesFiles bool
}

// fileWatcher is a program that not every kernel takes.
const fileWatcher = bpf.TrackerProgMapFile

func load(ctx context.Context, cfg Config, kind linkKind) (*kernelSide, error) {
	// Only kernels before 5.11 charge maps to this limit; elsewhere it is a
	// no-op that needs no capability.
	if err := rlimit.RemoveMemlock(); err != nil {
		cfg.Logger.Debug("the limit on locked memory stays as it is", "error", err)
	}
	spec, err := prepareSpec(cfg, kind)
	if err != nil {
		return nil, err
	}
	shared, err := shareSpans(spec, cfg)
	if err != nil {
		return nil, err
	}
	for _, m := range shared {
		defer m.Close() // The collection has a reference of its own.
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("counting processors: %w", err)
	}
	if err := sizePools(spec, cfg.MaxMapBytes, cpus); err != nil {
		return nil, err
	}
	watches := true
	if err := tryTracing(spec.Programs[fileWatcher].AttachTo); err != nil {
		cfg.Logger.Debug("no probe on file mappings, looking into /proc instead", "error", err)
		watches = false
		delete(spec.Programs, fileWatcher)
	}
	if err := dropInterrupts(spec, cfg.Logger); err != nil {
		return nil, err
	}
	later := takeLater(spec, extendedPolls)
	loading := &cpuMeter{}
	collection, err := newCollection(ctx, spec, shared, nil, loading)
	if err != nil {
		return nil, loadError(err)
	}
	side := &kernelSide{collection: collection, loading: loading, later: later, watchesFiles: watches, entryReturn: cfg.EntryReturn, evidenceEvery: cfg.evidenceEvery}
	side.interrupts = newInterrupts(collection, cfg.interruptsTime)
	if err := errors.Join(side.bind(), side.fillPools()); err != nil {
		return nil, errors.Join(err, side.close())
	}
	return side, nil
}

// tryTracing loads a program without work for the entry of a kernel function:
// whether the kernel takes one is known then before it verifies all the others.
func tryTracing(function string) error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry, AttachTo: function,
		License:      "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	return program.Close()
}

// close frees the programs and the maps.
func (k *kernelSide) close() error {
	k.collection.Close()
	return k.maps.Close()
}

func prepareSpec(cfg Config, kind linkKind) (*ebpf.CollectionSpec, error) {
	spec, err := bpf.LoadTracker()
	if err != nil {
		return nil, fmt.Errorf("reading the BPF objects of this build: %w", err)
	}
	if kind == linkMulti {
		for _, program := range spec.Programs {
			if program.Type == ebpf.Kprobe {
				program.AttachType = ebpf.AttachTraceUprobeMulti
			}
		}
	}
	spec.Maps[bpf.TrackerMapSlowEvents].MaxEntries = cfg.EventBytes
	if !cfg.CQETimestamps {
		spec.Maps[bpf.TrackerMapCqeSamples].MaxEntries = uint32(os.Getpagesize())
	}
	return spec, errors.Join(
		spec.Variables["read_cqe_stamps"].Set(cfg.CQETimestamps),
		spec.Variables["threshold_ns"].Set(uint64(cfg.Threshold.Nanoseconds())),
		spec.Variables["histogram_edges"].Set(verbs.HistogramEdges()),
	)
}

func loadError(err error) error {
	if verifier := new(ebpf.VerifierError); errors.As(err, &verifier) {
		return &KernelError{Need: "a verifier that accepts the programs", Release: kernelRelease(), Err: err}
	}
	return fmt.Errorf("loading the BPF programs: %w", err)
}

func (k *kernelSide) bind() error {
	k.allMaps = maps.Clone(k.collection.Maps)
	if err := k.collection.Assign(&k.maps); err != nil {
		return fmt.Errorf("finding the BPF maps: %w", err)
	}
	var errs [7]error
	k.queues, errs[0] = newTable[bpf.TrackerQueue](k.maps.Queues, "queues")
	k.segments, errs[1] = newTable[bpf.TrackerSegment](k.maps.Segments, "segments")
	k.devices, errs[2] = newTable[bpf.TrackerDevice](k.maps.Devices, "devices")
	k.libraries, errs[3] = newTable[bpf.TrackerLibrary](k.maps.Libraries, "libraries")
	k.sites, errs[4] = newTable[bpf.TrackerSite](k.maps.Sites, "sites")
	k.functions, errs[5] = newTable[bpf.TrackerPollFunction](k.maps.PollFunctions, "poll_functions")
	k.baselines, errs[6] = newTable[bpf.TrackerBaseline](k.maps.Baselines, "baselines")
	if errs[4] == nil {
		for i := range k.sites.length {
			k.freeSites = append(k.freeSites, i)
		}
	}
	k.interval = k.collection.Variables[bpf.TrackerVarCollection]
	k.costTick = k.collection.Variables[bpf.TrackerVarCostTick]
	return errors.Join(errs[:]...)
}

// fillPools hands out every segment, every schedule, the indexes of devices that sysfs
// does not show, and every slot, each slot with a generation of its own.
func (k *kernelSide) fillPools() error {
	for i := range k.segments.length {
		if err := k.maps.FreeSegments.Update(nil, i, ebpf.UpdateAny); err != nil {
			return fmt.Errorf("filling the pool of segments: %w", err)
		}
	}
	for i := range k.maps.Schedules.MaxEntries() {
		if err := k.maps.FreeSchedules.Update(nil, i, ebpf.UpdateAny); err != nil {
			return fmt.Errorf("filling the pool of schedules: %w", err)
		}
	}
	for i := uint32(sysfsDevices); i < k.devices.length; i++ {
		if err := k.freeDevice(i); err != nil {
			return err
		}
	}
	for i := range k.queues.length {
		if err := k.freeSlot(i, uint64(i)+1); err != nil {
			return err
		}
	}
	return nil
}

// freeSlot makes the slot an empty queue and hands it out. Generations are
// spaced such that those of different slots never meet in 24 bits while both
// are in use.
func (k *kernelSide) freeSlot(slot uint32, generation uint64) error {
	fresh := bpf.TrackerQueue{Generation: generation}
	if err := k.queues.store(slot, &fresh); err != nil {
		return err
	}
	if err := k.maps.FreeQueues.Update(nil, slot, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("handing out queue slot %d: %w", slot, err)
	}
	return nil
}

// memoryOfMaps is what maps take, by the kernel's own count.
func memoryOfMaps(all map[string]*ebpf.Map) uint64 {
	var sum uint64
	for _, m := range all {
		info, err := m.Info()
		if err != nil {
			continue
		}
		if bytes, ok := info.Memlock(); ok {
			sum += bytes
		}
	}
	return sum
}
