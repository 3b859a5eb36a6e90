package tracer

import (
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestRegistrationsOf(t *testing.T) {
	key := bpf.ResourcesRegistrationsKey{Incarnation: 7, Tgid: 42, Device: 3, Kind: 2, Error: 12}
	value := bpf.ResourcesRegistrations{
		Count: 5, Bytes: 4096, TimeNs: 1000, Ended: 2, EndedTimeNs: 500, Regions: 3, RegionBytes: 2048,
	}
	want := verbs.Registrations{
		Process: verbs.ProcessID{TGID: 42, Incarnation: 7}, Device: "mlx5_0", Kind: verbs.MemoryDMABuf, Errno: 12,
		Count: 5, Bytes: 4096, Time: time.Microsecond, DeregistrationTime: 500 * time.Nanosecond, Regions: 3, RegionBytes: 2048,
	}
	if got := registrationsOf(&key, &value, "mlx5_0"); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// A region counts for what its process posted while it lived.
func TestMemoryOfARequest(t *testing.T) {
	owner := verbs.ProcessID{TGID: 42, Incarnation: 7}
	region := bpf.ResourcesRegion{
		Incarnation: 7, Tgid: 42, SinceNs: 100, Kind: 3, Exporter: exporterName("nvidia"),
		Gpu: [16]byte{0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
	}
	want := verbs.Memory{Kind: verbs.MemoryPeer, Exporter: "nvidia", GPU: "GPU-deadbeef-0102-0304-0506-0708090a0b0c"}
	if got := memoryOfRegion(&region); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, c := range []struct {
		name          string
		process       verbs.ProcessID
		posted, ended uint64
		usable        bool
	}{
		{"while it lives", owner, 150, 0, true},
		{"at once", owner, 100, 0, true},
		{"ended since", owner, 150, 151, true},
		{"ended before", owner, 150, 150, false},
		{"registered later, under the same key", owner, 99, 0, false},
		{"another process", verbs.ProcessID{TGID: 43, Incarnation: 7}, 150, 0, false},
		{"before an exec", verbs.ProcessID{TGID: 42, Incarnation: 6}, 150, 0, false},
	} {
		region.EndedNs = c.ended
		if got := wasUsable(&region, c.process, c.posted); got != c.usable {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func exporterName(name string) (raw [16]int8) {
	for i, c := range name {
		raw[i] = int8(c)
	}
	return raw
}

// The kinds are numbered as the kernel side numbers them.
func TestMemoryKinds(t *testing.T) {
	for kind, want := range map[bpf.ResourcesMemoryKind]string{
		bpf.ResourcesMemoryKindMEMORY_UNKNOWN: "",
		bpf.ResourcesMemoryKindMEMORY_HOST:    "host",
		bpf.ResourcesMemoryKindMEMORY_DMABUF:  "dmabuf",
		bpf.ResourcesMemoryKindMEMORY_PEER:    "peer",
		bpf.ResourcesMemoryKindMEMORY_DEVICE:  "device",
	} {
		if got := verbs.MemoryKind(kind).String(); got != want {
			t.Errorf("%d is %q, want %q", kind, got, want)
		}
	}
}

// Without probes nothing was registered.
func TestRegistrationsWithoutCore(t *testing.T) {
	r := &resources{}
	all, err := r.registrations()
	if err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
	if m := r.memoryOf(verbs.ProcessID{}, "mlx5_0", 1, 1); m != (verbs.Memory{}) {
		t.Errorf("%+v", m)
	}
	if err := r.forgetRegions(func(uint32, uint64) bool { return true }); err != nil {
		t.Error(err)
	}
}

// The room for regions stays within its share of the bound.
func TestKernelRegions(t *testing.T) {
	if n := kernelRegions(defaultMapBytes); n < 6000 || n > 8192 {
		t.Errorf("%d regions by default", n)
	}
	for _, bound := range []uint64{1 << 20, 4 << 20, 4 << 30} {
		if n := kernelRegions(bound); n == 0 || n > 8192 || kernelRegionBytes(n) > bound/32 {
			t.Errorf("%d regions, %d bytes, of %d", n, kernelRegionBytes(n), bound)
		}
	}
}

// What is asked about a process that registered memory, later and perhaps when it has
// ended, changes nothing about its queues; and it is forgotten with the process.
func TestRegistrantsAreApart(t *testing.T) {
	cfg, err := Config{TakesProcess: func(int) bool { return true }}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	id := verbs.ProcessID{TGID: 42, Incarnation: 7}
	tr := &Tracer{cfg: cfg, registrants: map[verbs.ProcessID]bool{id: false}}
	tr.choices.keep(id, true)
	tr.keepRegistrant(id, false)
	if !tr.shows(id) {
		t.Error("queues of a chosen process are not told of any more")
	}
	tr.keepRegistrant(id, true)
	if !tr.registrants[id] {
		t.Error("the answer was not kept")
	}
	delete(tr.registrants, id)
	tr.keepRegistrant(id, true)
	if len(tr.registrants) > 0 {
		t.Error("the answer about a process that has ended was kept")
	}
}
