package tracer

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// mostVerifiers bounds how many programs are verified at a time. The longest
// verification takes a fourth of the time of all.
const mostVerifiers = 4

// newCollection is ebpf.NewCollectionWithOptions with the programs loaded on several
// CPUs at once. Most of a start is the kernel verifying programs, which it does for
// each apart; meter adds up what that takes. Once the context has ended, no further one
// is begun. types keeps the kernel's types between collections; it may be nil.
func newCollection(ctx context.Context, spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map, types *btf.Cache, meter *cpuMeter) (*ebpf.Collection, error) {
	if types == nil {
		types = btf.NewCache()
	}
	collection, err := ebpf.NewCollectionWithOptions(withPrograms(spec), ebpf.CollectionOptions{MapReplacements: shared})
	if err != nil {
		return nil, err
	}
	collection.Programs, err = loadPrograms(ctx, spec, collection.Maps, types, meter)
	if err != nil {
		collection.Close()
		return nil, err
	}
	return collection, nil
}

// loadPrograms loads the programs of a spec on maps that are there. After an error
// it begins no further program, and keeps none.
func loadPrograms(ctx context.Context, spec *ebpf.CollectionSpec, on map[string]*ebpf.Map, types *btf.Cache, meter *cpuMeter) (map[string]*ebpf.Program, error) {
	var (
		verifiers sync.WaitGroup
		mu        sync.Mutex
		waiting   = longestFirst(spec.Programs)
		loaded    = map[string]*ebpf.Program{}
		failed    error
	)
	next := func() (name string, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(waiting) == 0 || failed != nil {
			return "", false
		}
		if failed = ctx.Err(); failed != nil {
			return "", false
		}
		name, waiting = waiting[0], waiting[1:]
		return name, true
	}
	keep := func(name string, program *ebpf.Program, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			// What keeps one from loading keeps the others from it, most often.
			failed = cmp.Or(failed, err)
			return
		}
		loaded[name] = program
	}
	for range min(mostVerifiers, runtime.GOMAXPROCS(0), len(waiting)) {
		verifiers.Go(func() {
			meter.run(func() {
				for name, ok := next(); ok; name, ok = next() {
					program, err := loadProgram(spec, name, on, types)
					keep(name, program, err)
				}
			})
		})
	}
	verifiers.Wait()
	if failed == nil {
		return loaded, nil
	}
	for _, program := range loaded {
		_ = program.Close()
	}
	return nil, failed
}

// longestFirst are the names of programs in the order that keeps all CPUs busy to
// the end, if the longest take the longest.
func longestFirst(programs map[string]*ebpf.ProgramSpec) []string {
	return slices.SortedFunc(maps.Keys(programs), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(programs[b].Instructions), len(programs[a].Instructions)), cmp.Compare(a, b))
	})
}

// withPrograms is a spec with some of its programs alone, which it shares.
func withPrograms(spec *ebpf.CollectionSpec, names ...string) *ebpf.CollectionSpec {
	some := *spec
	some.Programs = make(map[string]*ebpf.ProgramSpec, len(names))
	for _, name := range names {
		some.Programs[name] = spec.Programs[name]
	}
	return &some
}

func loadProgram(spec *ebpf.CollectionSpec, name string, on map[string]*ebpf.Map, types *btf.Cache) (*ebpf.Program, error) {
	one := withPrograms(spec, name)
	one.Variables = nil // They are in the maps.
	collection, err := ebpf.NewCollectionWithOptions(one, ebpf.CollectionOptions{MapReplacements: on, Cache: types})
	if err != nil {
		return nil, err
	}
	defer collection.Close()
	return collection.DetachProgram(name), nil
}
