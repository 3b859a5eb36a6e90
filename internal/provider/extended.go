package provider

import (
	"debug/elf"
	"fmt"
	"io"
	"slices"
)

// Extended answers questions about functions of a provider that only its
// objects point to, those of ibv_qp_ex and ibv_cq_ex. It keeps the file's
// segments in memory, and is for one goroutine.
type Extended struct {
	a *analysis
	// stores is what functionStores found, once it was asked.
	stores map[int64][]uint64
}

// OpenExtended reads a driver library. Errors are those of InspectProvider.
func OpenExtended(file io.ReaderAt) (*Extended, error) {
	img, err := openImage(file)
	if err != nil {
		return nil, err
	}
	kind, a, err := img.classify()
	if err != nil {
		return nil, err
	}
	if kind != Provider {
		return nil, fmt.Errorf("%w: %s is not imported", ErrNotVerbs, setOpsName)
	}
	a.kept = 4 // wr_set_sge(qp, lkey, address, length)
	return &Extended{a: a}, a.prepare()
}

// Locate says where probes on the function may stand that begins at a file
// offset; at EntryOffset the first four arguments are still in their registers. The offset may come from a process that lies: where no function
// begins the error wraps ErrUnresolved.
func (e *Extended) Locate(offset uint64) (Target, error) {
	address, ok := e.a.img.address(offset)
	if !ok || !e.a.isFunction(address) {
		return Target{}, fmt.Errorf("%w: no function begins at file offset %#x", ErrUnresolved, offset)
	}
	return e.a.locate(address)
}

// Alternatives finds what else the library stores where it stores the address
// of the function at the file offset: providers exchange the functions of an
// object while it lives, such as libmlx5 wr_complete by one that fails. The
// function itself is not among them. The first call takes the effort of decoding
// the whole library.
func (e *Extended) Alternatives(offset uint64) []Target {
	const mostAlternatives = 8
	address, ok := e.a.img.address(offset)
	if !ok {
		return nil
	}
	if e.stores == nil {
		e.stores = e.a.functionStores()
	}
	var found []uint64
	for _, of := range e.stores {
		if !slices.Contains(of, address) {
			continue
		}
		for _, other := range of {
			if other != address && !slices.Contains(found, other) {
				found = append(found, other)
			}
		}
	}
	if len(found) > mostAlternatives {
		return nil // That place is one of many kinds of objects.
	}
	var targets []Target
	for _, other := range found {
		if target, err := e.a.locate(other); err == nil {
			targets = append(targets, target)
		}
	}
	return targets
}

// functionStores lists by the offset in an object the functions whose addresses
// are stored there by single instructions.
func (a *analysis) functionStores() map[int64][]uint64 {
	stores := map[int64][]uint64{}
	for _, bounds := range a.pointingFunctions() {
		f, err := a.decodeFunction(bounds)
		if err != nil {
			continue
		}
		connected := false
		for i := range f.instructions {
			in := &f.instructions[i]
			for _, s := range in.stores[:in.numStores] {
				if s.base == a.cpu.stack || s.offset < smallestObject || s.offset > largestObject {
					continue
				}
				if !connected {
					f.connect(a.leaves)
					connected = true
				}
				for _, v := range a.values(f, s.value, i) {
					if v.origin == constantValue && a.isFunction(uint64(v.add)) {
						stores[s.offset] = append(stores[s.offset], uint64(v.add))
					}
				}
			}
		}
	}
	return stores
}

// pointingFunctions returns the bounds of the functions that may take the address
// of a function: decoding all of a large library takes a hundred milliseconds,
// and the first process that uses it would not wait. On arm64 any may.
func (a *analysis) pointingFunctions() []span {
	if a.img.machine != elf.EM_X86_64 {
		all := map[span]bool{}
		for _, start := range a.frames.starts {
			if bounds, ok := a.frames.function(start); ok {
				all[bounds] = true
			}
		}
		return sortedSpans(all)
	}
	pointers := map[uint64]bool{}
	for _, start := range a.frames.starts {
		pointers[start] = true
	}
	for at, r := range a.relocations {
		if r.imported == "" && a.isFunction(r.address) {
			pointers[at] = true
		}
	}
	places := map[uint64]bool{}
	a.references(pointers, func(at uint64) {
		if !a.isBranchX86(at) {
			places[at] = true
		}
	})
	return a.functionsAt(places)
}

// isBranchX86 reports whether four bytes look like the distance of a direct call or
// jump, by the byte before them.
func (a *analysis) isBranchX86(at uint64) bool {
	before := a.img.bytes(at-1, 1)
	return len(before) == 1 && (before[0] == 0xe8 || before[0] == 0xe9)
}

// Where in a provider's object the pointers of ibv_qp_ex can be: 320 and 328
// bytes into the public part are the least on x86-64, and providers put little
// before it.
const (
	smallestObject = 256
	largestObject  = 1024
)
