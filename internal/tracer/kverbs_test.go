package tracer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Without the RDMA core no consumer is known, and nothing fails.
func TestKernelVerbsWithoutCore(t *testing.T) {
	cfg, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	k := newKernelVerbs(cfg, &kernelSide{})
	if name, err := k.consumer(verbs.ProcessID{TGID: verbs.KernelTGID | 3}); name != "" || err != nil {
		t.Errorf("consumer %q, %v", name, err)
	}
	if k.probeInfo() != nil || k.mapBytes() != 0 {
		t.Error("there are probes or maps")
	}
	losses := map[string]uint64{}
	k.addLosses(losses)
	if n, ok := losses["kernel_return_skipped"]; !ok || n != 0 || len(losses) != 3 {
		t.Errorf("losses %v", losses)
	}
	k.closeAll()
}

// An entry whose return is probed later would be taken for a call that does not
// end. Every program of the object has its place.
func TestKernelReturnsAreProbedBeforeEntries(t *testing.T) {
	spec, err := bpf.LoadKverbs()
	if err != nil {
		t.Fatal(err)
	}
	placed := map[string]bool{}
	isReturn := func(program string) bool {
		section := spec.Programs[program].SectionName
		return strings.HasPrefix(section, "fexit/") || strings.HasPrefix(section, "kretprobe/")
	}
	for v, programs := range verbPrograms {
		for _, names := range [][]string{programs.traced, programs.probed} {
			for i, name := range names {
				placed[name] = true
				if last := i == len(names)-1; isReturn(name) == last {
					t.Errorf("verb %d: %s is number %d of %d", v, name, i+1, len(names))
				}
			}
		}
		for _, name := range programs.traced {
			if want := traceType(name) == ebpf.AttachTraceFExit; want != isReturn(name) {
				t.Errorf("%s is in %s", name, spec.Programs[name].SectionName)
			}
		}
	}
	for _, p := range kverbsControl {
		placed[p.program] = true
		if isReturn(p.program) != p.isReturn {
			t.Errorf("%s is in %s", p.program, spec.Programs[p.program].SectionName)
		}
	}
	placed[bpf.KverbsProgCqScheduled] = true
	for name := range spec.Programs {
		if !placed[name] {
			t.Errorf("%s is never attached", name)
		}
	}
}

// What both objects have in common must look alike in both.
func TestObjectsShareTheTracker(t *testing.T) {
	tracker, err := bpf.LoadTracker()
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := bpf.LoadKverbs()
	if err != nil {
		t.Fatal(err)
	}
	shared := 0
	for name, m := range kernel.Maps {
		of := tracker.Maps[name]
		if of == nil || isCompilers(name) {
			continue
		}
		shared++
		if m.Type != of.Type || m.KeySize != of.KeySize || m.ValueSize != of.ValueSize || m.Flags != of.Flags {
			t.Errorf("%s is %v in one object and %v in the other", name, of, m)
		}
	}
	if kernel.Maps[sharedVariables] == nil || tracker.Maps[sharedVariables] == nil || shared < 20 {
		t.Errorf("%d maps are shared", shared)
	}
	for _, spec := range []*ebpf.CollectionSpec{tracker, kernel} {
		if section := spec.Variables[bpf.KverbsVarCollection].SectionName; section != sharedVariables {
			t.Errorf("%s is in %s", bpf.KverbsVarCollection, section)
		}
	}
}

func TestLoadedDrivers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"mlx5_ib", "ext4", "rdma_rxe"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mlx5, rxe := moduleInode(dir, "mlx5_ib"), moduleInode(dir, "rdma_rxe")
	if mlx5 == 0 || rxe == 0 || mlx5 == rxe || moduleInode(dir, "irdma") != 0 {
		t.Errorf("mlx5_ib is %d, rdma_rxe %d, irdma %d", mlx5, rxe, moduleInode(dir, "irdma"))
	}
	modules := map[string]bool{}
	for _, d := range knownDrivers {
		if modules[d.module] || d.functions[verbPostSend] == "" || d.functions[verbPostRecv] == "" || d.functions[verbPollCQ] == "" {
			t.Errorf("%s: twice, or without a verb", d.module)
		}
		modules[d.module] = true
	}
}

// A module that was loaded anew is probed anew, whichever way its driver was
// found, and its devices are asked once more: they may have their old names.
func TestDriverThatWasReloadedIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "stays"), 0o755); err != nil {
		t.Fatal(err)
	}
	stays := moduleInode(dir, "stays")
	k := newKernelVerbs(Config{}, &kernelSide{})
	k.tried = map[string]uint64{"stays": stays, "reloaded": stays + 1}
	k.asked["rxe0"] = true
	k.refreshDrivers(t.Context(), dir)
	if len(k.tried) != 1 || k.tried["stays"] != stays || len(k.asked) != 0 {
		t.Errorf("tried %v, asked %v", k.tried, k.asked)
	}
}

func TestPortStates(t *testing.T) {
	dir := t.TempDir()
	if files, err := portStates(filepath.Join(dir, "infiniband")); files != nil || err != nil {
		t.Errorf("without RDMA: %v, %v", files, err)
	}
	for _, name := range []string{"mlx5_0", "rxe0"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files, err := portStates(dir)
	want := []string{filepath.Join(dir, "mlx5_0/ports/1/state"), filepath.Join(dir, "rxe0/ports/1/state")}
	if err != nil || !slices.Equal(files, want) {
		t.Errorf("%v, %v", files, err)
	}
}

// No address of the kernel leaves the tracer.
func TestConsumersHaveNoAddresses(t *testing.T) {
	const identity, secret = 3<<32 | 17, 0xffff888012345678
	wr := verbs.WorkRequest{CQ: identity, WRID: secret, Poster: verbs.Thread{TID: noThread | 2, CPU: 2, Name: "swapper"}}
	describeConsumer(&wr)
	if wr.CQ != 0 || wr.WRID != 0 || !wr.HasCQNumber || wr.CQNumber != 17 {
		t.Errorf("%+v", wr)
	}
	if wr.Poster != (verbs.Thread{}) {
		t.Errorf("no thread, but %+v", wr.Poster)
	}
	s := verbs.WorkRequest{WRID: secret, Poster: verbs.Thread{TID: 5}}
	describeConsumer(&s)
	if s.HasCQNumber || s.CQ != 0 || s.WRID != 0 || s.Poster.TID != 5 {
		t.Errorf("%+v", s)
	}
}

func TestSizeOfCQ(t *testing.T) {
	qp := bpf.ResourcesKernelQp{SendCq: bpf.ResourcesKernelCq{Number: 4, Cqe: 100}, RecvCq: bpf.ResourcesKernelCq{Number: 5, Cqe: 200}}
	for number, want := range map[uint32]uint32{4: 100, 5: 200, 6: 0} {
		if got := sizeOfCQ(&qp, number); got != want {
			t.Errorf("CQ %d: %d, want %d", number, got, want)
		}
	}
}
