package provider

import (
	"debug/elf"
	"fmt"
	"io"
	"strings"
)

// setOpsName is the function by which libibverbs and its providers are
// recognised (rdma-core, libibverbs/dummy_ops.c).
const setOpsName = "verbs_set_ops"

// analysis is one file under examination.
type analysis struct {
	img         *image
	cpu         *processor
	dynamic     *dynamic
	symbols     []symbol
	relocations map[uint64]relocation
	frames      *frameTable
	// imports remembers what the stubs of the procedure linkage table lead to,
	// "" for an address that is not a stub.
	imports map[uint64]string
	notes   []string
	effort  int
	// kept is how many arguments a probe on entry needs in their registers.
	kept int
}

// maxEffort bounds the work on one file, in instructions decoded, steps of
// following a value and members of tables read. The largest provider of
// rdma-core 65 takes a twentieth of it.
const maxEffort = 4_000_000

var errEffort = fmt.Errorf("%w: more than %d steps", ErrTooLarge, maxEffort)

// spend counts work and reports whether there may be more.
func (a *analysis) spend(n int) bool {
	a.effort += n
	return a.effort <= maxEffort
}

// Classify says what a file is from its dynamic section alone, which is
// cheap for the many files that have no part in verbs.
func Classify(file io.ReaderAt) (Kind, error) {
	img, err := openImage(file)
	if err != nil {
		return Other, err
	}
	kind, _, err := img.classify()
	return kind, err
}

// classify loads the file and reads its symbols if it is a verbs library.
func (img *image) classify() (Kind, *analysis, error) {
	d, err := img.readDynamic()
	if err != nil {
		return Other, nil, err
	}
	if found, err := img.mentions(d, setOpsName); err != nil || !found {
		return Other, nil, err
	}
	if err := img.load(); err != nil {
		return Other, nil, err
	}
	symbols, err := img.readSymbols(d)
	if err != nil {
		return Other, nil, err
	}
	kind := Other
	for i := range symbols {
		if symbols[i].name != setOpsName {
			continue
		}
		if symbols[i].defined {
			kind = Verbs
			break
		}
		kind = Provider
	}
	return kind, &analysis{img: img, dynamic: d, symbols: symbols, kept: 3}, nil
}

// prepare reads what both kinds of library need.
func (a *analysis) prepare() error {
	if a.cpu != nil {
		return nil
	}
	cpu, err := processorOf(a.img.machine)
	if err != nil {
		return err
	}
	relocations, err := a.img.readRelocations(a.dynamic, a.symbols)
	if err != nil {
		return err
	}
	frames, err := a.img.readFrames()
	if err != nil {
		return err
	}
	a.cpu, a.relocations, a.frames, a.imports = cpu, relocations, frames, map[uint64]string{}
	return nil
}

// library starts the result.
func (a *analysis) library(kind Kind) *Library {
	return &Library{Kind: kind, Machine: a.img.machine, ABI: privateABI(a.symbols), Digest: a.img.digest()}
}

// maxNotes bounds the notes on one file.
const maxNotes = 32

func (a *analysis) note(format string, arguments ...any) {
	if len(a.notes) < maxNotes {
		a.notes = append(a.notes, fmt.Sprintf(format, arguments...))
	}
}

// loaded says what the file knows of the 8 bytes at an address: what the
// loader writes there, provided that nobody changes it later.
func (a *analysis) loaded(address uint64) (value, bool) {
	r, ok := a.relocations[address]
	switch {
	case !ok:
		return value{}, false
	case r.imported != "":
		return value{origin: importValue, name: r.imported}, true
	case a.img.fixed(address):
		return value{origin: constantValue, add: int64(r.address)}, true
	default:
		return value{}, false
	}
}

// stub returns the name of the import that a stub of the procedure linkage
// table at the address jumps to, "" if there is no stub.
func (a *analysis) stub(address uint64) string {
	if name, known := a.imports[address]; known {
		return name
	}
	name := a.decodeStub(address)
	a.imports[address] = name
	return name
}

// decodeStub follows at most five instructions: a landing marker, the load of
// the address and the jump.
func (a *analysis) decodeStub(address uint64) string {
	if !a.img.executable(address) {
		return ""
	}
	f := &function{index: map[uint64]int{}}
	for at := address; len(f.instructions) < 5 && a.spend(1); {
		in, err := a.cpu.decode(a.img.bytes(at, a.cpu.maxSize), at)
		if err != nil || in.flow != flowNext && in.flow != flowJump || !in.changesOnly(a.cpu.scratch) {
			return ""
		}
		f.instructions = append(f.instructions, in)
		if in.flow == flowJump {
			if in.direct {
				return ""
			}
			f.connect(func(*instruction) bool { return false })
			return a.importOf(f, len(f.instructions)-1)
		}
		at = in.end()
	}
	return ""
}

// importOf returns the import that the call or jump leads to for certain.
func (a *analysis) importOf(f *function, index int) string {
	in := &f.instructions[index]
	if in.direct {
		return a.stub(in.target)
	}
	found := a.evaluator(f).source(nil, in.indirect, index)
	if len(found) == 1 && found[0].origin == importValue {
		return found[0].name
	}
	return ""
}

// leaves reports whether the call never returns.
func (a *analysis) leaves(in *instruction) bool {
	if !in.direct {
		return false
	}
	switch a.stub(in.target) {
	case "abort", "exit", "_exit", "__assert_fail", "__stack_chk_fail", "__chk_fail", "__fortify_fail":
		return true
	default:
		return false
	}
}

// site is a call or tail call of an imported function.
type site struct {
	f     *function
	index int
	name  string
}

// sites finds all calls of the imports that match. Functions that cannot be
// decoded are returned by their bounds.
func (a *analysis) sites(match func(name string) bool) (found []site, undecoded []span) {
	for _, bounds := range a.candidates(match) {
		f, err := a.decodeFunction(bounds)
		if err != nil {
			undecoded = append(undecoded, bounds)
			continue
		}
		f.connect(a.leaves)
		for i := range f.instructions {
			in := &f.instructions[i]
			if in.flow != flowCall && in.flow != flowJump {
				continue
			}
			if in.flow == flowJump && a.inStub(f, i) {
				continue
			}
			if name := a.importOf(f, i); name != "" && match(name) {
				found = append(found, site{f, i, name})
			}
		}
	}
	return found, undecoded
}

// inStub reports whether the jump belongs to a stub: nothing comes before it
// but the rest of the stub and padding. Not the stub is a call site, its
// callers are.
func (a *analysis) inStub(f *function, index int) bool {
	if a.stub(f.instructions[index].address) == "" {
		return false
	}
	for index > 0 && len(f.before[index]) == 1 && int(f.before[index][0]) == index-1 &&
		f.instructions[index-1].changesOnly(a.cpu.scratch) {
		index--
	}
	return index == 0 || len(f.before[index]) == 0
}

// candidates returns the bounds of the functions that may call a matching
// import: those that refer to its slot in the global offset table or to a
// stub that does.
func (a *analysis) candidates(match func(name string) bool) []span {
	slots := map[uint64]bool{}
	for at, r := range a.relocations {
		if r.imported != "" && match(r.imported) {
			slots[at] = true
		}
	}
	stubs := map[uint64]bool{}
	references := map[uint64]bool{}
	a.references(slots, func(at uint64) {
		// The stub begins a few bytes before the reference to the slot.
		for back := uint64(0); back <= 8; back++ {
			if name := a.stub(at - back); name != "" && match(name) {
				stubs[at-back] = true
			}
		}
		references[at] = true
	})
	a.references(stubs, func(at uint64) { references[at] = true })
	return a.functionsAt(references)
}

// references calls found with the address of each instruction, or of a byte
// within it, that may refer to one of the addresses.
func (a *analysis) references(to map[uint64]bool, found func(at uint64)) {
	if len(to) == 0 {
		return
	}
	for i := range a.img.loads {
		s := &a.img.loads[i]
		if s.flags&elf.PF_X == 0 {
			continue
		}
		if a.img.machine == elf.EM_X86_64 {
			referencesX86(s, to, found)
		} else {
			referencesA64(s, to, found)
		}
	}
}

// functionsAt returns the bounds of the functions around the addresses, in
// the order of addresses.
func (a *analysis) functionsAt(addresses map[uint64]bool) []span {
	seen := map[span]bool{}
	for at := range addresses {
		if bounds, ok := a.frames.function(at); ok {
			seen[bounds] = true
		}
	}
	return sortedSpans(seen)
}

// driverName is the name under which a provider registers itself: the first
// member of the structure passed to verbs_register_driver_<abi>.
func (a *analysis) driverName() string {
	found, _ := a.sites(func(name string) bool { return strings.HasPrefix(name, "verbs_register_driver") })
	for _, s := range found {
		for _, v := range a.values(s.f, a.cpu.arguments[0], s.index) {
			if v.origin != constantValue {
				continue
			}
			if name, ok := a.img.text(a.relocations[uint64(v.add)].address); ok && printable(name, maxName) {
				return name
			}
		}
	}
	return a.soname()
}

// soname derives a name from DT_SONAME: libmlx5.so.1, librxe-rdmav34.so.
func (a *analysis) soname() string {
	at, ok := a.dynamic.values[elf.DT_SONAME]
	if !ok {
		return "unknown"
	}
	name, _ := a.img.text(a.dynamic.values[elf.DT_STRTAB] + at)
	name, _, _ = strings.Cut(name, ".so")
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "lib"), "-rdmav")
	if !printable(name, maxName) {
		return "unknown"
	}
	return name
}

// maxName bounds the name of a provider.
const maxName = 64

// printable keeps forged names out of logs and attributes.
func printable(name string, limit int) bool {
	if name == "" || len(name) > limit {
		return false
	}
	for _, c := range name {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}
