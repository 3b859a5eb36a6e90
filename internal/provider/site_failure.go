package provider

import (
	"cmp"
	"fmt"
	"slices"
)

// failureFinder collects the sites of one post and of the local functions to
// which it passes bad_wr.
type failureFinder struct {
	c     *codeMap
	sites map[uint64]Site
	gaps  []string
}

// failureSites finds where a post reports the work request at which it
// failed: the stores of a register to *bad_wr. A NULL stored there first says
// nothing.
func (c *codeMap) failureSites(function Function, address uint64) SiteSet {
	f := &failureFinder{c: c, sites: map[uint64]Site{}}
	q := newQuantities()
	if err := f.function(function, address, entryState(c.a.cpu, q), q, 0); err != nil {
		return none("%v", err)
	}
	set := SiteSet{Kind: SitesFull}
	for _, s := range f.sites {
		set.Sites = append(set.Sites, s)
	}
	slices.SortFunc(set.Sites, func(a, b Site) int { return cmp.Compare(a.Offset, b.Offset) })
	switch {
	case len(set.Sites) == 0 && len(f.gaps) == 0:
		return none("nothing is stored to *bad_wr")
	case len(set.Sites) == 0:
		return none("%s", f.gaps[0])
	case len(f.gaps) > 0:
		set.Kind, set.Reason = SitesPartial, f.gaps[0]
	}
	return set
}

func (f *failureFinder) function(function Function, address uint64, entry *machineState, q *quantities, depth int) error {
	w := newWalk(f.c, entry, q)
	if err := w.run(address); err != nil {
		return err
	}
	for _, jump := range w.lost() {
		f.gaps = append(f.gaps, fmt.Sprintf("where the jump at %#x leads is unknown", jump))
	}
	o := outputsOf(w)
	type passed struct {
		target uint64
		state  *machineState
	}
	var calls []passed
	var stored []memoryAccess
	w.machine.wrote = func(_ *step, m memoryAccess) { stored = append(stored, m) }
	w.eachStep(func(b, i int, s *step, state *machineState) {
		stored = stored[:0]
		w.machine.execute(s, state.clone())
		for _, m := range stored {
			if m.at.of == quantityOutput && m.at.add == 0 && m.size == 8 {
				f.store(function, w, s, m, state)
			}
		}
		stored = stored[:0]
		if s.flow != flowCall {
			return
		}
		if local, _ := f.c.callee(s); local != 0 && f.handsOver(state) {
			calls = append(calls, passed{local, state.clone()})
		}
	})
	for _, call := range calls {
		if depth == maxDepth {
			f.gaps = append(f.gaps, fmt.Sprintf("bad_wr is passed on more than %d calls deep", maxDepth))
			continue
		}
		q := newQuantities()
		if err := f.function(function, call.target, f.c.calledState(w, o, call.state, q), q, depth+1); err != nil {
			f.gaps = append(f.gaps, err.Error())
		}
	}
	return nil
}

// handsOver reports whether bad_wr itself is among the arguments of a call.
func (f *failureFinder) handsOver(state *machineState) bool {
	for _, r := range f.c.a.cpu.passed {
		if state.register(r) == (word{quantityOutput, 0}) {
			return true
		}
	}
	return false
}

// store makes a site of one store to *bad_wr.
func (f *failureFinder) store(function Function, w *walk, s *step, m memoryAccess, state *machineState) {
	if m.stored == number(0) {
		return
	}
	offset, ok := f.c.a.img.fileOffset(s.address)
	if m.value == noRegister || s.cost == costRefused || s.repeats || !ok {
		f.gaps = append(f.gaps, fmt.Sprintf("the store to *bad_wr at %#x cannot be probed", s.address))
		return
	}
	site := Site{
		Function: function, Offset: offset, Complete: true, Proven: true,
		Emulated: s.cost == costEmulated,
		WR:       Location{Base: Place{Kind: PlaceRegister, Register: uint8(m.value)}},
		QP:       argumentLocation(w.holders(state), quantityQueue),
	}
	if have, twice := f.sites[offset]; twice && have.QP != site.QP {
		site.QP = Location{}
	}
	f.sites[offset] = site
}
