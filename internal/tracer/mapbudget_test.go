package tracer

import (
	"testing"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// The default bound holds on machines of every size, and leaves room for work
// requests.
func TestMapsFitTheirBound(t *testing.T) {
	for _, c := range []struct {
		cpus     int
		bound    uint64
		segments uint32 // at least
		fits     bool
	}{
		{1, defaultMapBytes, 5910, true},
		{2, defaultMapBytes, 5910, true},
		{64, defaultMapBytes, 5430, true},
		{256, defaultMapBytes, 4450, true},
		{1024, defaultMapBytes, 1500, true},
		{256, 24 << 20, fewestSegments, true},
		{2, 4 << 20, 0, false},
		{256, 4 << 20, 0, false},
	} {
		spec := defaultSpec(t)
		spec.Maps[bpf.TrackerMapTracesCtxV1].MaxEntries = 1
		err := sizePools(spec, c.bound, c.cpus)
		if (err == nil) != c.fits {
			t.Errorf("%d processors, %d MiB: %v", c.cpus, c.bound>>20, err)
		}
		if err != nil {
			continue
		}
		sum, err := coreMapBytes(spec, c.bound, c.cpus)
		if err != nil {
			t.Fatal(err)
		}
		kernel, err := kverbsMapBytes(spec, c.cpus)
		if err != nil {
			t.Fatal(err)
		}
		sum += kernel
		delete(spec.Maps, bpf.TrackerMapTracesCtxV1) // It is another tool's.
		for _, m := range spec.Maps {
			sum += estimateBytes(m, c.cpus)
		}
		if sum > c.bound+4096 {
			t.Errorf("%d processors: the maps take %d KiB of %d", c.cpus, sum>>10, c.bound>>10)
		}
		if got := spec.Maps[bpf.TrackerMapSegments].MaxEntries; got < c.segments {
			t.Errorf("%d processors, %d MiB: %d segments, want at least %d", c.cpus, c.bound>>20, got, c.segments)
		} else {
			t.Logf("%d processors: %d segments, the others take %d KiB", c.cpus, got, (sum-uint64(got)*uint64(spec.Maps[bpf.TrackerMapSegments].ValueSize))>>10)
		}
	}
}

// The least bound is enough, and nothing below it is.
func TestLeastMapBytes(t *testing.T) {
	for _, cpus := range []int{1, 2, 64, 256, 1024} {
		least, err := LeastMapBytes(cpus)
		if err != nil {
			t.Fatal(err)
		}
		for bound, fits := range map[uint64]bool{least: true, least - 1: false} {
			cfg, err := Config{}.withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			spec, err := prepareSpec(cfg, linkMulti)
			if err != nil {
				t.Fatal(err)
			}
			if err := sizePools(spec, bound, cpus); (err == nil) != fits {
				t.Errorf("%d processors, least %d bytes: a bound of %d gives %v", cpus, least, bound, err)
			}
		}
		t.Logf("%d processors: %d KiB", cpus, least>>10)
	}
}

// What a machine has more of in processors costs what the kernel allocates for
// each: a value of a per-CPU array, and an element of a hash table.
func TestEstimateGrowsWithProcessors(t *testing.T) {
	spec, err := bpf.LoadTracker()
	if err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]uint64{
		bpf.TrackerMapCounters:   uint64(bpf.TrackerCounterCOUNTERS) * 8,
		bpf.TrackerMapAggregates: uint64(spec.Maps[bpf.TrackerMapAggregates].ValueSize),
		bpf.TrackerMapQueues:     0,
	} {
		m := spec.Maps[name]
		if got := estimateBytes(m, 257) - estimateBytes(m, 256); got < least || least == 0 && got != 0 {
			t.Errorf("%s: one processor more takes %d bytes more, want at least %d", name, got, least)
		}
	}
}

// defaultSpec is the specification of the default configuration, its pools not sized yet.
func defaultSpec(t *testing.T) *ebpf.CollectionSpec {
	t.Helper()
	cfg, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := prepareSpec(cfg, linkMulti)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}
