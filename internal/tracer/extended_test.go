package tracer

import (
	"errors"
	"testing"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func wants(offset uint64, role bpf.TrackerExtendedRole, operation uint8) wantedFunction {
	return wantedFunction{
		target: provider.Target{Offset: offset, ReturnOffset: offset + 4, EntryOffset: offset + 8},
		key:    part{role: role, operation: operation}.key(),
	}
}

// A process may put one function into two places of an object, and say of it
// something else than another process does.
func TestTwoRoles(t *testing.T) {
	build, start := bpf.TrackerExtendedRoleROLE_BUILD, bpf.TrackerExtendedRoleROLE_START
	l := &extendedLibrary{probed: map[probedFunction]bool{wants(0x100, start, 0).probed(): true}}
	for name, tt := range map[string]struct {
		wanted []wantedFunction
		fails  bool
	}{
		"known as it is":   {[]wantedFunction{wants(0x100, start, 0), wants(0x200, build, 2)}, false},
		"twice the same":   {[]wantedFunction{wants(0x200, build, 2), wants(0x200, build, 2)}, false},
		"known as another": {[]wantedFunction{wants(0x100, build, 2)}, false},
		"two operations":   {[]wantedFunction{wants(0x200, build, 2), wants(0x200, build, 3)}, true},
	} {
		if err := l.check(tt.wanted); errors.Is(err, errTwoRoles) != tt.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range uint64(mostProbed) {
		l.probed[probedFunction{offset: 0x1000 + i}] = true
	}
	if err := l.check([]wantedFunction{wants(0x100, build, 2)}); err == nil {
		t.Error("as many functions as a process makes up")
	}
}

// Each function is attached with its role in the cookie; entry and return of one function stand at one instruction.
func TestBatches(t *testing.T) {
	complete, build := bpf.TrackerExtendedRoleROLE_COMPLETE, bpf.TrackerExtendedRoleROLE_BUILD
	batches := batchesOf([]wantedFunction{wants(0x100, complete, 0), wants(0x200, complete, 0), wants(0x400, build, 4)}, 7)
	if len(batches) != 3 {
		t.Fatalf("%d batches", len(batches))
	}
	leave, enter, post := batches[0], batches[1], batches[2]
	if !leave.program.isReturn || leave.program.name != bpf.TrackerProgLeaveWrComplete || enter.program.name != bpf.TrackerProgEnterWrComplete {
		t.Errorf("the return is not attached before the entry: %+v, %+v", leave, enter)
	}
	for _, b := range batches[:2] {
		if len(b.places) != 2 || b.places[0] != 0x104 || b.places[1] != 0x204 {
			t.Errorf("wr_complete at %#x", b.places)
		}
	}
	if len(post.places) != 1 || post.places[0] != 0x408 || post.cookies[0] != 7|uint64(build)<<32|4<<40|8<<56 {
		t.Errorf("a builder at %#x with cookies %#x", post.places, post.cookies)
	}
}

// What is known of a library holds in every process, wherever it is mapped.
func TestSetInAnotherProcess(t *testing.T) {
	l := &extendedLibrary{}
	p := pendingSet{key: bpf.TrackerExtendedKey{Kind: uint32(bpf.TrackerExtendedKindEXTENDED_QP)}}
	offsets := make([]uint64, len(p.set.Pointers))
	here := provider.Code{Start: 0x10000, End: 0x20000, Offset: 0x2000}
	for i := range offsets {
		offsets[i] = 0x2000 + uint64(i)*16
		p.set.Pointers[i], _ = here.Address(offsets[i])
	}
	// No function: what older versions of the structure have there, and none.
	offsets[21], p.set.Pointers[21] = 0, 2
	offsets[10], p.set.Pointers[10] = 0, 0
	l.remember(&p, offsets)
	l.remember(&p, offsets)
	if len(l.sets) != 1 {
		t.Fatalf("%d combinations remembered", len(l.sets))
	}
	id := verbs.ProcessID{TGID: 5, Incarnation: 6}
	same, ok := l.sets[0].in(id, here)
	if !ok || same.set.Pointers != p.set.Pointers || same.key.Tgid != 5 || same.key.Incarnation != 6 {
		t.Errorf("mapped at the same place: %+v", same)
	}
	if same.key.Digest != digestPointers(p.key.Kind, p.set.Pointers[:]) {
		t.Error("another digest")
	}
	there := provider.Code{Start: 0x50000, End: 0x60000, Offset: 0x2000}
	other, ok := l.sets[0].in(id, there)
	if !ok || other.set.Pointers[0] != 0x50000 || other.set.Pointers[21] != 2 || other.set.Pointers[10] != 0 {
		t.Errorf("mapped elsewhere: %+v", other)
	}
	if _, ok := l.sets[0].in(id, provider.Code{Start: 0x50000, End: 0x50010, Offset: 0x2000}); ok {
		t.Error("a part of the file that has not all of the functions")
	}
}

// wr_complete is exchanged at run time: it is not in the digest.
func TestDigestLeavesOutComplete(t *testing.T) {
	pointers := make([]uint64, bpf.TrackerQpFunctionQP_FUNCTIONS)
	for i := range pointers {
		pointers[i] = uint64(i) + 1
	}
	for _, kind := range []bpf.TrackerExtendedKind{bpf.TrackerExtendedKindEXTENDED_QP, bpf.TrackerExtendedKindEXTENDED_CQ} {
		before := digestPointers(uint32(kind), pointers)
		for i := range pointers {
			pointers[i] += 100
			part := i != int(bpf.TrackerQpFunctionQP_COMPLETE)
			if kind == bpf.TrackerExtendedKindEXTENDED_CQ {
				part = i < int(bpf.TrackerCqFunctionCQ_FUNCTIONS)
			}
			if changed := digestPointers(uint32(kind), pointers) != before; changed != part {
				t.Errorf("kind %d: pointer %d changes the digest: %v", kind, i, changed)
			}
			pointers[i] -= 100
		}
	}
}

// Every function of the two objects has at most one part.
func TestPartsAreDistinct(t *testing.T) {
	for kind := range uint32(2) {
		parts, err := partsOf(kind)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int]bool{}
		roles := map[roleKey]bool{}
		for _, p := range parts {
			if seen[p.index] || roles[p.key()] {
				t.Errorf("kind %d: index %d or role %#x twice", kind, p.index, p.key())
			}
			seen[p.index], roles[p.key()] = true, true
		}
	}
	if _, err := partsOf(9); err == nil {
		t.Error("an unknown kind passes")
	}
}
