package provider

import (
	"errors"
	"fmt"
)

// Bounds on a stored analysis, well above what is found in any library.
const (
	maxStoredTargets = 64
	maxStoredSites   = 256
	maxStoredText    = 1024
)

// check reports an error unless the stored library can be the result of
// analysing this file. It fills in the symbols.
func (a *analysis) check(lib *Library) error {
	if err := a.prepare(); err != nil {
		return err
	}
	if lib.Kind != Provider || lib.Machine != a.img.machine || lib.ABI != privateABI(a.symbols) || !printable(lib.Name, maxName) {
		return fmt.Errorf("it is of a %v %q for %v with the interface %q", lib.Kind, lib.Name, lib.Machine, lib.ABI)
	}
	if len(lib.Targets) > maxStoredTargets || len(lib.Sites) > len(lib.Targets) || len(lib.Notes) > maxNotes || lib.Unresolved < 0 {
		return fmt.Errorf("%d functions, %d sets of sites, %d notes, %d unresolved", len(lib.Targets), len(lib.Sites), len(lib.Notes), lib.Unresolved)
	}
	for _, note := range lib.Notes {
		if !isSentence(note) {
			return errors.New("a note is no sentence")
		}
	}
	// The effort of this is not that of an analysis.
	own := *a
	own.effort, own.notes = 0, nil
	checker := &storedChecker{newCodeMap(&own)}
	for i := range lib.Targets {
		if err := checker.target(&lib.Targets[i]); err != nil {
			return err
		}
	}
	for i := range lib.Sites {
		if err := checker.set(lib, i); err != nil {
			return err
		}
	}
	return a.crossCheck(lib)
}

// isSentence keeps forged texts out of logs.
func isSentence(text string) bool {
	if len(text) > maxStoredText {
		return false
	}
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// storedChecker holds stored offsets against the code.
type storedChecker struct{ c *codeMap }

// proven returns the instruction at a file offset, if one begins there in a
// straight sweep over its function, whose bounds the unwind tables tell.
func (k *storedChecker) proven(offset uint64) (*step, error) {
	address, ok := k.c.a.img.address(offset)
	if !ok {
		return nil, fmt.Errorf("%#x is not in an executable segment", offset)
	}
	s := k.c.at(address)
	if s == nil {
		return nil, fmt.Errorf("no instruction is known to begin at %#x", offset)
	}
	if s.cost == costRefused {
		return nil, fmt.Errorf("%#x: %w", offset, ErrRefusedInstruction)
	}
	return s, nil
}

// target finds the places of the probes again, which is cheap.
func (k *storedChecker) target(t *Target) error {
	s, err := k.proven(t.Offset)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Function, err)
	}
	if f := k.c.function(s.address); f == nil || f.bounds.start != s.address {
		return fmt.Errorf("%s: no function begins at %#x", t.Function, t.Offset)
	}
	want, err := k.c.a.locate(s.address)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Function, err)
	}
	want.Function = t.Function
	if *t != want {
		return fmt.Errorf("%s: %+v where %+v is right", t.Function, *t, want)
	}
	return nil
}

// set checks one set of sites and that it is of one of the functions.
func (k *storedChecker) set(lib *Library, index int) error {
	set := &lib.Sites[index]
	known := false
	for _, t := range lib.Targets {
		known = known || t.Function == set.Function && t.Offset == set.FunctionOffset
	}
	for _, other := range lib.Sites[:index] {
		known = known && other.FunctionOffset != set.FunctionOffset
	}
	switch {
	case !known:
		return fmt.Errorf("sites of %s at %#x, which is no function or has others", set.Function, set.FunctionOffset)
	case len(set.Sites) > maxStoredSites, (set.Kind == SitesNone) != (len(set.Sites) == 0), (set.Kind == SitesFull) != (set.Reason == ""):
		return fmt.Errorf("%s has %d sites, which are %s: %q", set.Function, len(set.Sites), set.Kind, set.Reason)
	case !isSentence(set.Reason), !isSentence(set.Shared):
		return fmt.Errorf("a reason of %s is no sentence", set.Function)
	}
	if err := k.sites(set); err != nil {
		return fmt.Errorf("%s: %w", set.Function, err)
	}
	return nil
}

// sites checks the sites of one function and the alternatives to them.
func (k *storedChecker) sites(set *SiteSet) error {
	for i := range set.Sites {
		s := &set.Sites[i]
		if i > 0 && set.Sites[i-1].Offset >= s.Offset {
			return fmt.Errorf("sites out of order at %#x", s.Offset)
		}
		if s.Instead != nil && (!s.IsCall || s.Instead.IsCall || s.Instead.Instead != nil) {
			return fmt.Errorf("an alternative to %#x that is none", s.Offset)
		}
		for _, place := range []*Site{s, s.Instead} {
			if place == nil {
				continue
			}
			if err := k.site(set.Function, place); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *storedChecker) site(function Function, s *Site) error {
	at, err := k.proven(s.Offset)
	if err != nil {
		return err
	}
	isCall := at.flow == flowCall
	emulated := at.cost == costEmulated || isCall && at.direct
	if s.Function != function || at.repeats || s.IsCall != isCall || s.Emulated != emulated || s.LongNop != (at.cost == costLongNop) {
		return fmt.Errorf("the instruction at %#x is another one than %+v", s.Offset, *s)
	}
	for _, l := range []Location{s.WC, s.CQ, s.CQE, s.WR, s.QP} {
		if !k.isPlace(l.Base) || !k.isPlace(l.Counter) {
			return fmt.Errorf("the location %+v at %#x does not exist", l, s.Offset)
		}
	}
	if len(s.Overrides) > maxOverrides {
		return fmt.Errorf("%d members to be taken from elsewhere at %#x", len(s.Overrides), s.Offset)
	}
	for _, o := range s.Overrides {
		if o.Size == 0 || o.Size > 8 || int(o.Offset)+int(o.Size) > sizeofWC || o.From.Kind == PlaceMemory || !k.isPlace(o.From) {
			return fmt.Errorf("a member %+v at %#x that does not exist", o, s.Offset)
		}
	}
	return nil
}

// isPlace reports whether a probe can look there.
func (k *storedChecker) isPlace(p Place) bool {
	if p.Kind == PlaceNone {
		return p == Place{}
	}
	_, err := RegisterOffset(k.c.a.img.machine, p.Register)
	return err == nil && (p.Kind == PlaceMemory || p.Offset == 0)
}
