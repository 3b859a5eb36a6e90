package tracer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// sharedVariables is the map of the variables that the objects with the queue
// tracker have in common, see SHARED in bpf/knobs.h.
const sharedVariables = ".data.shared"

// scratchPerCPU is SCRATCH_PER_CPU of bpf/maps/kernel_scratch.h.
const scratchPerCPU = 4

// drainCallbacks mark the work requests by which a queue is seen to drain
// (ib_drain_qp() in drivers/infiniband/core/verbs.c, mlx5_ib_drain_sq()), in the
// order of drain_done in bpf/kernel_reader.h.
var drainCallbacks = []string{"ib_drain_qp_done", "mlx5_ib_drain_qp_done"}

// kverbsControl are the programs on the RDMA core.
var kverbsControl = []corePoint{
	{function: "ib_create_qp_kernel", program: bpf.KverbsProgLeaveKernelCreate, isReturn: true},
	{function: "ib_create_qp_kernel", program: bpf.KverbsProgEnterKernelCreate},
	{function: "ib_modify_qp", program: bpf.KverbsProgEnterKernelModify},
	{function: "ib_destroy_qp_user", program: bpf.KverbsProgEnterKernelDestroy},
	{function: "ib_query_port", program: bpf.KverbsProgEnterQueryPort},
}

// scheduleTracepoint tells of interrupts that ask for a poll (TRACE_SYSTEM
// rdma_core). Without it nobody is ever found to poll late.
const scheduleTracepoint = "cq_schedule"

// verbPrograms are the programs on a verb, in the order of attaching: returns
// before entries. The kernel runs the exit program that was attached last first.
var verbPrograms = [numVerbs]struct{ traced, probed []string }{
	verbPostSend: {
		traced: []string{bpf.KverbsProgTracePostSendAgain, bpf.KverbsProgTracePostSendExit, bpf.KverbsProgTracePostSend},
		probed: []string{bpf.KverbsProgProbePostSendExit, bpf.KverbsProgProbePostSend},
	},
	verbPostRecv: {
		traced: []string{bpf.KverbsProgTracePostRecvExit, bpf.KverbsProgTracePostRecv},
		probed: []string{bpf.KverbsProgProbePostRecvExit, bpf.KverbsProgProbePostRecv},
	},
	verbPostSRQRecv: {
		traced: []string{bpf.KverbsProgTracePostSrqRecvExit, bpf.KverbsProgTracePostSrqRecv},
		probed: []string{bpf.KverbsProgProbePostSrqRecvExit, bpf.KverbsProgProbePostSrqRecv},
	},
	verbPollCQ: {
		traced: []string{bpf.KverbsProgTracePollCqAgain, bpf.KverbsProgTracePollCqExit, bpf.KverbsProgTracePollCq},
		probed: []string{bpf.KverbsProgProbePollCqExit, bpf.KverbsProgProbePollCq},
	},
}

// kverbsSide is the maps and programs of kernel verbs that do not depend on a
// driver.
type kverbsSide struct {
	collection *ebpf.Collection
	links      []link.Link
	// probed are the programs for kprobes, loaded once a driver needs them.
	probed *ebpf.Collection
	spec   *ebpf.CollectionSpec
	// loading adds up what loading programs takes.
	loading *cpuMeter
}

// kverbsSpec reads the object, for the maps of a loaded tracker.
func kverbsSpec(threshold time.Duration, cpus int) (*ebpf.CollectionSpec, error) {
	spec, err := bpf.LoadKverbs()
	if err != nil {
		return nil, fmt.Errorf("reading the BPF objects of this build: %w", err)
	}
	scratch := spec.Maps[bpf.KverbsMapKernelScratch]
	scratch.MaxEntries = min(scratchPerCPU*uint32(cpus), scratch.MaxEntries)
	return spec, errors.Join(
		spec.Variables[bpf.KverbsVarThresholdNs].Set(uint64(threshold.Nanoseconds())),
		spec.Variables[bpf.KverbsVarHistogramEdges].Set(verbs.HistogramEdges()),
	)
}

// isCompilers says whether a map holds the variables of one object.
func isCompilers(name string) bool { return strings.HasPrefix(name, ".") && name != sharedVariables }

// sharedMaps are the maps of the tracker that the object has too, sized alike.
func sharedMaps(spec *ebpf.CollectionSpec, tracker map[string]*ebpf.Map) map[string]*ebpf.Map {
	shared := map[string]*ebpf.Map{}
	for name, declared := range spec.Maps {
		if m := tracker[name]; m != nil && !isCompilers(name) {
			declared.MaxEntries = m.MaxEntries()
			shared[name] = m
		}
	}
	return shared
}

// ownMapBytes is what those maps of an object take that are not the tracker's.
func ownMapBytes(spec, tracker *ebpf.CollectionSpec, cpus int) uint64 {
	sum := uint64(0)
	for name, m := range spec.Maps {
		if tracker.Maps[name] == nil || isCompilers(name) {
			sum += estimateBytes(m, cpus)
		}
	}
	return sum
}

// ownMaps are those of a loaded object that are not the tracker's.
func ownMaps(loaded, tracker map[string]*ebpf.Map) map[string]*ebpf.Map {
	own := maps.Clone(loaded)
	maps.DeleteFunc(own, func(name string, _ *ebpf.Map) bool { return tracker[name] != nil && !isCompilers(name) })
	return own
}

// kverbsMapBytes is what the maps take that are not the tracker's.
func kverbsMapBytes(tracker *ebpf.CollectionSpec, cpus int) (uint64, error) {
	spec, err := kverbsSpec(0, cpus)
	if err != nil {
		return 0, err
	}
	return ownMapBytes(spec, tracker, cpus), nil
}

// loadKverbs loads the programs on the RDMA core, on the maps of the tracker, and
// attaches them. missing lists the functions that this kernel lacks.
func loadKverbs(ctx context.Context, tracker *kernelSide, threshold time.Duration) (side *kverbsSide, missing []string, err error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, nil, fmt.Errorf("counting processors: %w", err)
	}
	spec, err := kverbsSpec(threshold, cpus)
	if err != nil {
		return nil, nil, err
	}
	shared := sharedMaps(spec, tracker.allMaps)
	side = &kverbsSide{spec: spec, loading: tracker.loading}
	var programs []string
	for _, p := range kverbsControl {
		programs = append(programs, p.program)
	}
	programs = append(programs, bpf.KverbsProgCqScheduled)
	side.collection, err = side.load(ctx, shared, programs, "", nil)
	if err != nil {
		return nil, nil, coreLoadError(err)
	}
	for _, p := range kverbsControl {
		l, err := attachCore(side.collection.Programs[p.program], p)
		switch {
		case err == nil:
			side.links = append(side.links, l)
		case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EINVAL):
			return nil, nil, errors.Join(kprobeError(p.function, err), side.close())
		default:
			missing = append(missing, p.function)
		}
	}
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{
		Name: scheduleTracepoint, Program: side.collection.Programs[bpf.KverbsProgCqScheduled],
	})
	if err != nil {
		return side, append(missing, scheduleTracepoint), nil
	}
	side.links = append(side.links, l)
	return side, missing, nil
}

// load loads some of the programs on given maps. attachTo is the function that
// traced ones are for, types keeps the kernel's types between loads; it may be nil.
func (s *kverbsSide) load(ctx context.Context, on map[string]*ebpf.Map, programs []string, attachTo string, types *btf.Cache) (*ebpf.Collection, error) {
	spec := withPrograms(s.spec, programs...).Copy()
	if attachTo != "" {
		for _, program := range spec.Programs {
			program.AttachTo = attachTo
		}
	}
	return newCollection(ctx, spec, on, types, s.loading)
}

// learnDrains tells the programs of the callbacks that mark drains, as far as
// they are loaded.
func (s *kverbsSide) learnDrains() error {
	symbols, err := findSymbols(drainCallbacks, nil)
	if err != nil {
		return err
	}
	var addresses [2]uint64
	for i, name := range drainCallbacks {
		addresses[i] = symbols.addresses[name]
	}
	if err := s.collection.Variables[bpf.KverbsVarDrainDone].Set(addresses); err != nil {
		return fmt.Errorf("telling the programs of drains: %w", err)
	}
	return nil
}

// skipped counts the runs of the programs that do not depend on a driver, those for
// kprobes on verbs of all drivers included, that the kernel skipped.
func (s *kverbsSide) skipped() (n skips) {
	n.addPrograms(s.collection.Programs)
	if s.probed != nil {
		n.addPrograms(s.probed.Programs)
	}
	for _, l := range s.links {
		n.others += linkMisses(l)
	}
	return n
}

func (s *kverbsSide) close() error {
	err := closeLinks(s.links)
	s.links = nil
	if s.probed != nil {
		s.probed.Close()
	}
	s.collection.Close()
	return err
}

// programsForProbes are those for kprobes, which serve every driver.
func (s *kverbsSide) programsForProbes(ctx context.Context) (map[string]*ebpf.Program, error) {
	if s.probed != nil {
		return s.probed.Programs, nil
	}
	var names []string
	for _, p := range verbPrograms {
		names = append(names, p.probed...)
	}
	collection, err := s.load(ctx, s.collection.Maps, names, "", nil)
	if err != nil {
		return nil, err
	}
	s.probed = collection
	return collection.Programs, nil
}
