package provider

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
)

// InspectProvider analyses a driver library, given the layout of the tables
// from the libibverbs it is used with. Errors wrap ErrNotVerbs, Err32Bit,
// ErrNotELF, ErrMachine, ErrMalformed, ErrTooLarge, ErrUnresolved,
// ErrSymbolMismatch or ErrRefusedInstruction.
func InspectProvider(file io.ReaderAt, slots Slots) (*Library, error) {
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
	return a.inspectProvider(slots)
}

func (a *analysis) inspectProvider(slots Slots) (*Library, error) {
	if err := a.prepare(); err != nil {
		return nil, err
	}
	lib := a.library(Provider)
	lib.Name = a.driverName()
	tables, unresolved := a.tables(slots)
	if !a.spend(0) {
		return nil, errEffort
	}
	lib.Unresolved = unresolved
	if err := a.addTargets(lib, tables, slots); err != nil {
		return nil, err
	}
	if len(lib.Targets) == 0 && unresolved > 0 {
		return nil, fmt.Errorf("%w: %d calls of %s in %q whose table is unknown", ErrUnresolved, unresolved, setOpsName, lib.Name)
	}
	if err := a.crossCheck(lib); err != nil {
		return nil, err
	}
	if !a.spend(0) {
		return nil, errEffort
	}
	lib.Notes = a.notes
	a.addSites(lib)
	return lib, nil
}

// table is one struct verbs_context_ops.
type table struct {
	address uint64
	entries map[int]entry
}

// tables finds the tables handed to verbs_set_ops, and counts the calls of
// which at least one table remains unknown.
func (a *analysis) tables(slots Slots) (found []table, unresolved int) {
	sites, undecoded := a.sites(func(name string) bool { return name == setOpsName })
	for _, bounds := range undecoded {
		a.note("the function at %#x may call %s but cannot be decoded", bounds.start, setOpsName)
		unresolved++
	}
	if len(sites)+len(undecoded) == 0 {
		a.note("no call of %s was found", setOpsName)
		unresolved++
	}
	known := map[uint64]map[int]entry{}
	var indirect []value
	for _, s := range sites {
		complete := true
		for _, v := range a.values(s.f, a.cpu.arguments[1], s.index) {
			if v.origin == memoryValue {
				indirect = append(indirect, v)
				continue
			}
			entries, ok := a.readTable(uint64(v.add), slots)
			if v.origin != constantValue || !ok {
				complete = false
				continue
			}
			known[uint64(v.add)] = entries
		}
		if !complete {
			a.note("the table of the call at %#x is unknown", s.f.instructions[s.index].address)
			unresolved++
		}
	}
	for _, v := range indirect {
		if !a.indirectTable(v, slots, known) {
			unresolved++
		}
	}
	for address, entries := range known {
		found = append(found, table{address, entries})
	}
	sort.Slice(found, func(i, j int) bool { return found[i].address < found[j].address })
	return found, unresolved
}

// indirectTable finds a table whose address comes from memory: a pointer that
// some initialised structure of the file holds, plus a constant (hns keeps the
// table of each hardware generation in a structure that its device table
// points to). Only an answer without alternative counts.
func (a *analysis) indirectTable(v value, slots Slots, known map[uint64]map[int]entry) bool {
	candidates := map[uint64]map[int]entry{}
	for _, r := range a.relocations {
		if r.imported != "" || a.img.executable(r.address) && a.isFunction(r.address) {
			continue
		}
		at := r.address + uint64(v.add)
		if _, twice := known[at]; twice {
			continue
		}
		entries, ok := a.readTable(at, slots)
		if ok && hasDataPath(entries, slots) {
			candidates[at] = entries
		}
	}
	if len(candidates) != 1 {
		a.note("a table that is passed by a pointer from memory has %d candidates", len(candidates))
		return false
	}
	for at, entries := range candidates {
		known[at] = entries
	}
	return true
}

// hasDataPath reports whether the table has a function to post or poll.
func hasDataPath(entries map[int]entry, slots Slots) bool {
	_, send := entries[slots.PostSend]
	_, poll := entries[slots.PollCQ]
	return send || poll
}

// addTargets turns the members of interest into targets.
func (a *analysis) addTargets(lib *Library, tables []table, slots Slots) error {
	functions := map[uint64][]Function{}
	for _, t := range tables {
		for _, w := range slots.wanted() {
			e, ok := t.entries[w.slot]
			switch {
			case !ok:
			case e.imported != "":
				a.note("%s is %s of another library: not a target", w.function, e.imported)
			case !slices.Contains(functions[e.address], w.function):
				functions[e.address] = append(functions[e.address], w.function)
			}
		}
	}
	for address, uses := range functions {
		if len(uses) > 1 {
			// Only a function that does nothing can serve both.
			a.note("the function at %#x serves as %v: a stub, not a target", address, uses)
			continue
		}
		target, err := a.locate(address)
		if err != nil {
			return fmt.Errorf("%s of %q: %w", uses[0], lib.Name, err)
		}
		target.Function = uses[0]
		lib.Targets = append(lib.Targets, target)
	}
	slices.Sort(a.notes)
	sortTargets(lib.Targets)
	return nil
}

// Refused reports whether the error means that the file is not analysed on
// purpose, as opposed to not having been read.
func Refused(err error) bool { return RefusedFor(err) != nil }

// RefusedFor returns which of the reasons to refuse a file the error is, nil for
// none of them.
func RefusedFor(err error) error {
	for _, reason := range []error{ErrNotELF, Err32Bit, ErrMachine, ErrMalformed, ErrTooLarge, ErrNotVerbs, ErrUnresolved, ErrSymbolMismatch, ErrRefusedInstruction} {
		if errors.Is(err, reason) {
			return reason
		}
	}
	return nil
}
