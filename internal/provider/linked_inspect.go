package provider

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"slices"
)

// linkedMark is in every file that libibverbs is a part of: it names the
// directory of the devices in sysfs (rdma-core, libibverbs/init.c).
const linkedMark = "infiniband_verbs"

// maxLinkedFunctions bounds the functions of drivers in one file. rdma-core 65 has
// 18 drivers with four each.
const maxLinkedFunctions = 128

// openLinked prepares the analysis of a file that libibverbs is a part of.
func openLinked(file io.ReaderAt, machine elf.Machine) (*analysis, error) {
	img, err := openImage(file)
	if err != nil {
		return nil, err
	}
	if img.machine != machine {
		return nil, fmt.Errorf("%w: %v", ErrMachine, img.machine)
	}
	d, err := img.readDynamic()
	if err != nil {
		return nil, err
	}
	if err := img.load(); err != nil {
		return nil, err
	}
	if !img.contains(linkedMark) {
		return nil, fmt.Errorf("%w: libibverbs is not a part of it", ErrNotVerbs)
	}
	symbols, err := img.readSymbols(d)
	if err != nil {
		return nil, err
	}
	a := &analysis{img: img, dynamic: d, symbols: symbols, kept: 3}
	return a, a.prepare()
}

// contains looks for text among the constants. It needs load.
func (img *image) contains(text string) bool {
	for i := range img.loads {
		if s := &img.loads[i]; s.flags&elf.PF_W == 0 && bytes.Contains(s.data, []byte(text)) {
			return true
		}
	}
	return false
}

// inspectLinked analyses functions of one driver at file offsets, besides those of
// an earlier analysis, nil if there was none; left are those that it leaves out. Only
// what a table of the file bears out can contradict the earlier analysis.
func (a *analysis) inspectLinked(offsets map[uint64]Function, before *Library) (lib *Library, left []toldFunction, err error) {
	addresses, left, err := a.driverAt(offsets)
	if err != nil {
		return nil, nil, err
	}
	if before != nil {
		for _, t := range before.Targets {
			address, ok := a.img.address(t.Offset)
			if !ok {
				continue
			}
			if function, again := addresses[address]; again && function != t.Function {
				return nil, nil, fmt.Errorf("%w: the function at file offset %#x is %s of one and %s of another", ErrContradiction, t.Offset, t.Function, function)
			}
			addresses[address] = t.Function
		}
	}
	if len(addresses) > maxLinkedFunctions {
		return nil, nil, fmt.Errorf("%w: more than %d functions of drivers", ErrTooLarge, maxLinkedFunctions)
	}
	lib = a.library(Provider)
	lib.Name, lib.Linked = "unknown", true
	for _, address := range slices.Sorted(maps.Keys(addresses)) {
		target, err := a.locate(address)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", addresses[address], err)
		}
		target.Function = addresses[address]
		lib.Targets = append(lib.Targets, target)
	}
	sortTargets(lib.Targets)
	if err := a.crossCheck(lib); err != nil {
		return nil, nil, err
	}
	if !a.spend(0) {
		return nil, nil, errEffort
	}
	lib.Notes = a.notes
	a.addSites(lib)
	return lib, left, nil
}

// driverAt returns the addresses in the file of the functions of one driver, and
// those that are none of it. A process may lie about them: they have to stand in
// tables of the file as those of a driver do. Another pair of functions may stand so
// by chance, between which a process can choose.
func (a *analysis) driverAt(offsets map[uint64]Function) (addresses map[uint64]Function, left []toldFunction, err error) {
	var at tableAddresses
	for offset, function := range offsets {
		address, ok := a.img.address(offset)
		if !ok || !a.isFunction(address) {
			return nil, nil, fmt.Errorf("%w: no function begins at file offset %#x", ErrUnresolved, offset)
		}
		at[function] = address
	}
	if !a.isDriver(&at) {
		return nil, nil, fmt.Errorf("%w: no table of the file has the functions of the driver", ErrUnresolved)
	}
	addresses = map[uint64]Function{}
	for offset, function := range offsets {
		if at[function] == 0 {
			left = append(left, toldFunction{offset, function})
			continue
		}
		addresses[at[function]] = function
	}
	return addresses, left, nil
}
