package tracer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// coreSide is the loaded programs and maps that watch the RDMA core.
type coreSide struct {
	collection *ebpf.Collection
	links      []link.Link
	// functions are those that are probed.
	functions []string

	// names guards devices, the indexes of devices by name.
	names   sync.Mutex
	devices map[string]uint32
}

// coreLosses are QPs, regions and sums of registrations that found no room, calls
// whose outcome was not seen, events that found the ring buffer full, and runs of
// programs that the kernel skipped.
type coreLosses struct{ qps, calls, events, regions, registrations, regionCalls, skipped uint64 }

func (l coreLosses) plus(other coreLosses) coreLosses {
	return coreLosses{
		qps: l.qps + other.qps, calls: l.calls + other.calls, events: l.events + other.events,
		regions: l.regions + other.regions, registrations: l.registrations + other.registrations,
		regionCalls: l.regionCalls + other.regionCalls,
	}
}

// coreSpec reads the programs and maps, with room for what a bound for all maps
// leaves.
func coreSpec(bound uint64) (*ebpf.CollectionSpec, error) {
	spec, err := bpf.LoadResources()
	if err != nil {
		return nil, fmt.Errorf("reading the BPF objects of this build: %w", err)
	}
	spec.Maps[bpf.ResourcesMapKernelQps].MaxEntries = kernelQPs(bound)
	spec.Maps[bpf.ResourcesMapRegions].MaxEntries = kernelRegions(bound)
	return spec, nil
}

// coreMapBytes is what the maps that are not the tracker's take with a bound for all
// maps, on a machine with so many possible processors.
func coreMapBytes(tracker *ebpf.CollectionSpec, bound uint64, cpus int) (uint64, error) {
	spec, err := coreSpec(bound)
	if err != nil {
		return 0, err
	}
	return ownMapBytes(spec, tracker, cpus), nil
}

// loadCore loads the programs, on the maps of the tracker and with own ones that fit
// a bound for all, and attaches them to the functions that this kernel has; withUser
// says whether ib_uverbs is loaded. missing lists the functions that it lacks and
// should have.
func loadCore(ctx context.Context, bound uint64, tracker *kernelSide, withUser bool) (side *coreSide, missing []string, err error) {
	spec, err := coreSpec(bound)
	if err != nil {
		return nil, nil, err
	}
	shared := sharedMaps(spec, tracker.allMaps)
	collection, err := newCollection(ctx, spec, shared, nil, tracker.loading)
	if err != nil {
		return nil, nil, coreLoadError(err)
	}
	side = &coreSide{collection: collection}
	for _, p := range corePoints {
		if p.user && !withUser {
			continue
		}
		l, err := attachCore(collection.Programs[p.program], p)
		switch {
		case err == nil:
			side.links = append(side.links, l)
			if !slices.Contains(side.functions, p.function) {
				side.functions = append(side.functions, p.function)
			}
		case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EINVAL):
			return nil, nil, errors.Join(kprobeError(p.function, err), side.close())
		case !p.optional && !slices.Contains(missing, p.function):
			missing = append(missing, p.function)
		}
	}
	return side, missing, nil
}

// coreLoadError names the most likely reason for which the programs are not
// accepted. A core that is built in has its types among the kernel's.
func coreLoadError(err error) error {
	verifier := new(ebpf.VerifierError)
	_, missing := os.Stat("/sys/kernel/btf/ib_core")
	if errors.As(err, &verifier) && missing != nil {
		return &KernelError{
			Need:    "type information of the module ib_core (CONFIG_DEBUG_INFO_BTF_MODULES)",
			Release: kernelRelease(), Err: err,
		}
	}
	return loadError(err)
}

func attachCore(program *ebpf.Program, p corePoint) (link.Link, error) {
	if p.isReturn {
		return link.Kretprobe(p.function, program, nil)
	}
	return link.Kprobe(p.function, program, nil)
}

// kprobeError names what to do when the kernel denies a kprobe.
func kprobeError(function string, err error) error {
	err = fmt.Errorf("kprobe on %s: %w", function, err)
	if !errors.Is(err, os.ErrPermission) {
		return err
	}
	held, errHeld := HeldCapabilities("/proc/self/status")
	if errHeld != nil {
		return errors.Join(err, errHeld)
	}
	return deniedKprobe(held, err)
}

// deniedKprobe tells why a process with these capabilities is denied kprobes. Debian
// and Ubuntu let kernel.perf_event_paranoid be more than 2, and take CAP_PERFMON for
// nothing then. Whoever has CAP_SYS_ADMIN is denied by something else.
func deniedKprobe(held map[string]bool, err error) error {
	if held["CAP_SYS_ADMIN"] {
		return fmt.Errorf("kernel lockdown, a seccomp filter or a security module denies probing the kernel in spite of CAP_SYS_ADMIN: %w", err)
	}
	return &CapabilityError{
		Missing: []string{"CAP_SYS_ADMIN"}, Err: err,
		Op: "probing the kernel (unless kernel.perf_event_paranoid is 2 or less, then CAP_PERFMON suffices)",
	}
}

func (s *coreSide) close() error {
	err := closeLinks(s.links)
	s.links = nil
	s.collection.Close()
	return err
}

// read is the value of a counter, 0 when it cannot be read.
func (s *coreSide) read(variable string) (n uint64) {
	if err := s.collection.Variables[variable].Get(&n); err != nil {
		return 0
	}
	return n
}

func (s *coreSide) losses() coreLosses {
	return coreLosses{
		qps:           s.read(bpf.ResourcesVarKernelQpsFull),
		calls:         s.read(bpf.ResourcesVarCoreCallsLost) + s.read(bpf.ResourcesVarConnectionsUnread),
		events:        s.read(bpf.ResourcesVarAsyncEventsLost),
		regions:       s.read(bpf.ResourcesVarRegionsFull),
		registrations: s.read(bpf.ResourcesVarRegisteredFull),
		regionCalls:   s.read(bpf.ResourcesVarRegionCallsLost),
		skipped:       s.skipped(),
	}
}

// skipped is how many runs of the programs the kernel skipped.
func (s *coreSide) skipped() uint64 {
	var n skips
	n.addPrograms(s.collection.Programs)
	for _, l := range s.links {
		n.others += linkMisses(l)
	}
	return n.others
}

// find returns what is known of a QP of a device, whoever owns it.
func (s *coreSide) find(number uint32, device string) (qp bpf.ResourcesKernelQp, ok bool) {
	index, ok := s.deviceIndex(device)
	if !ok {
		return qp, false
	}
	key := bpf.ResourcesKernelQpKey{Device: index, QpNum: number}
	if err := s.collection.Maps[bpf.ResourcesMapKernelQps].Lookup(&key, &qp); err != nil {
		s.forgetDevice(device)
		return qp, false
	}
	return qp, true
}

// forgetDevice makes the next search ask anew: a device that was removed and
// added again has another index.
func (s *coreSide) forgetDevice(name string) {
	s.names.Lock()
	defer s.names.Unlock()
	delete(s.devices, name)
}

func (s *coreSide) deviceIndex(name string) (uint32, bool) {
	s.names.Lock()
	defer s.names.Unlock()
	if index, ok := s.devices[name]; ok {
		return index, true
	}
	s.devices = map[string]uint32{}
	for index, name := range s.deviceNames() {
		s.devices[name] = max(s.devices[name], index)
	}
	index, ok := s.devices[name]
	return index, ok
}

// deviceNames are the names of the kernel's devices by index.
func (s *coreSide) deviceNames() map[uint32]string {
	names := map[uint32]string{}
	var index uint32
	var label bpf.ResourcesDeviceLabel
	entries := s.collection.Maps[bpf.ResourcesMapKernelDevices].Iterate()
	for entries.Next(&index, &label) {
		names[index] = commName(label.Name[:])
	}
	return names
}

// namedQP is a QP number on a device.
type namedQP struct {
	device string
	number uint32
}

// sweep removes the QPs and memory regions that ended some time ago, and returns all
// QPs that were destroyed since the time before.
func (s *coreSide) sweep(now uint64) (map[namedQP]bpf.ResourcesKernelQp, error) {
	destroyed := map[namedQP]bpf.ResourcesKernelQp{}
	names := s.deviceNames()
	var key bpf.ResourcesKernelQpKey
	var qp bpf.ResourcesKernelQp
	err := deleteMatching(s.collection.Maps[bpf.ResourcesMapKernelQps], &key, &qp, func() bool {
		if qp.EndedNs == 0 {
			return false
		}
		destroyed[namedQP{names[key.Device], key.QpNum}] = qp
		return now > qp.EndedNs+uint64(quarantine)
	})
	var regionKey bpf.ResourcesRegionKey
	var region bpf.ResourcesRegion
	return destroyed, errors.Join(err, deleteMatching(s.collection.Maps[bpf.ResourcesMapRegions], &regionKey, &region, func() bool {
		return region.EndedNs != 0 && now > region.EndedNs+uint64(quarantine)
	}))
}

// coreModules are the modules that the probes stand in. Their types are those of
// what is loaded at present.
var coreModules = []string{"ib_core", userModule}

// userModule serves the verbs of processes.
const userModule = "ib_uverbs"

// moduleState identifies what of coreModules is loaded: a module that is loaded
// anew has another directory. It is "" without ib_core.
func moduleState(directory string) string {
	var state []string
	for _, name := range coreModules {
		var stat unix.Stat_t
		if err := unix.Stat(directory+"/"+name, &stat); err != nil {
			if name == "ib_core" {
				return ""
			}
			continue
		}
		state = append(state, fmt.Sprint(name, " ", stat.Ino))
	}
	return strings.Join(state, ", ")
}
