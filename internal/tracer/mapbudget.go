package tracer

import (
	"fmt"
	"math/bits"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
)

const (
	// fewestSegments is the smallest pool for in-flight work requests that is
	// worth tracing with.
	fewestSegments = 256
	// threadsExpected is how many threads that post or poll room is kept for.
	// The kernel allocates theirs as they come.
	threadsExpected = 1024
	// buildersExpected is how many of them post through the extended verbs, whose
	// threads keep the chain that they build.
	buildersExpected = 32
)

// sizePools gives the segments what the other maps leave of the bound on a
// machine with so many possible processors.
func sizePools(spec *ebpf.CollectionSpec, bound uint64, cpus int) error {
	sizeForProcessors(spec, cpus)
	segments := spec.Maps[bpf.TrackerMapSegments]
	others, err := otherMapBytes(spec, bound, cpus)
	if err != nil {
		return err
	}
	each := uint64(segments.ValueSize)
	if bound < others+fewestSegments*each {
		least, err := leastBytes(spec, cpus)
		if err != nil {
			return err
		}
		return fmt.Errorf("the bound of %d KiB for BPF maps is too small: at least %d KiB are needed for %d processors",
			bound>>10, (least+1023)>>10, cpus)
	}
	n := uint32(min((bound-others)/each, uint64(segments.MaxEntries)))
	segments.MaxEntries = n
	spec.Maps[bpf.TrackerMapFreeSegments].MaxEntries = n
	return nil
}

// sizeForProcessors gives the maps that have an element for each processor as many.
func sizeForProcessors(spec *ebpf.CollectionSpec, cpus int) {
	spec.Maps[bpf.TrackerMapWaiting].MaxEntries = uint32(cpus)
}

// otherMapBytes is what all maps but the segments take within a bound.
func otherMapBytes(spec *ebpf.CollectionSpec, bound uint64, cpus int) (uint64, error) {
	// The RDMA core may be probed later.
	others, err := coreMapBytes(spec, bound, cpus)
	if err != nil {
		return 0, err
	}
	kernel, err := kverbsMapBytes(spec, cpus)
	if err != nil {
		return 0, err
	}
	others += kernel + mapHeader
	for name, m := range spec.Maps {
		// The map of application spans is another tool's, or tiny.
		if name != bpf.TrackerMapSegments && name != bpf.TrackerMapTracesCtxV1 {
			others += estimateBytes(m, cpus)
		}
	}
	return others, nil
}

// leastBytes is the least bound with which there is anything to trace with. Some
// maps take a part of the bound, so that it is approached from below.
func leastBytes(spec *ebpf.CollectionSpec, cpus int) (uint64, error) {
	for bound := uint64(0); ; {
		others, err := otherMapBytes(spec, bound, cpus)
		if err != nil {
			return 0, err
		}
		needed := others + fewestSegments*uint64(spec.Maps[bpf.TrackerMapSegments].ValueSize)
		if needed <= bound {
			return bound, nil
		}
		bound = needed
	}
}

// LeastMapBytes is the least Config.MaxMapBytes that Start accepts on a machine
// with so many possible processors, by the estimate of what maps take there.
func LeastMapBytes(cpus int) (uint64, error) {
	cfg, err := Config{}.withDefaults()
	if err != nil {
		return 0, err
	}
	spec, err := prepareSpec(cfg, linkMulti)
	if err != nil {
		return 0, err
	}
	sizeForProcessors(spec, cpus)
	return leastBytes(spec, cpus)
}

// Sizes of the kernel's own structures for a map, rounded up
// (htab_map_mem_usage and its like in kernel/bpf, Linux 6.18).
const (
	mapHeader     = 4096
	bucketBytes   = 16
	elementHeader = 48
	// ringPages are a ring buffer's beside its data, whose pages the kernel maps
	// twice, with pointers to them.
	ringPages    = 4
	ringPointers = 16
	// perCPUHash is what a hash table has for each processor beside elements:
	// counters of locks, pointers, lists of an LRU.
	perCPUHash = 128
)

// estimateBytes is what a map takes in the kernel, rounded up. A hash table that
// is allocated beforehand has one element more for each possible processor,
// which for large values is much on a large machine.
func estimateBytes(m *ebpf.MapSpec, cpus int) uint64 {
	entries, processors := uint64(m.MaxEntries), uint64(cpus)
	key, value := align8(m.KeySize), align8(m.ValueSize)
	buckets := uint64(1) << bits.Len64(entries-min(entries, 1))
	switch m.Type {
	case ebpf.Hash:
		return mapHeader + buckets*bucketBytes + (entries+processors)*(elementHeader+key+value) + processors*perCPUHash
	case ebpf.LRUHash:
		return mapHeader + buckets*bucketBytes + entries*(elementHeader+key+value) + processors*perCPUHash
	case ebpf.PerCPUArray:
		return mapHeader + entries*(8+value*processors)
	case ebpf.TaskStorage:
		threads := uint64(threadsExpected)
		if m.Name == bpf.TrackerMapBuilds {
			threads = buildersExpected
		}
		return mapHeader + threads*(elementHeader+value)
	case ebpf.RingBuf:
		return mapHeader + entries + ringPages*4096 + entries/4096*ringPointers
	default:
		return mapHeader + pageAligned(entries*value)
	}
}

func align8(size uint32) uint64 { return uint64(size+7) &^ 7 }

// pageAligned rounds up: arrays that are mapped into memory take whole pages.
func pageAligned(size uint64) uint64 { return (size + 4095) &^ 4095 }
