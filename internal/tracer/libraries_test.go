package tracer

import (
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// A file that could not be probed is tried again later, and warned of once. What
// was refused long ago takes no memory.
func TestRefusalEnds(t *testing.T) {
	l := &libraries{refused: map[fileKey]refusal{}}
	file, other := provider.FileID{Inode: 1}, provider.FileID{Inode: 2}
	wants := func(id provider.FileID) bool { return l.wants(provider.File{ID: id}) }
	if l.refuse(file) || !l.refuse(file) {
		t.Error("the first refusal is new, the second is not")
	}
	if wants(file) || !wants(other) {
		t.Error("a refused file is left alone, others are not")
	}
	age := func(d time.Duration) {
		l.refused[keyOf(file)] = refusal{id: file, until: l.refused[keyOf(file)].until.Add(-d)}
	}
	age(refusedTime)
	if !wants(file) {
		t.Error("after a while it is tried again")
	}
	age(10 * refusedTime)
	l.refuse(other)
	if _, kept := l.refused[keyOf(file)]; kept {
		t.Error("a refusal of long ago is kept")
	}
}

// A file with rdma-core linked in is probed anew when more of its functions are
// known, and not when fewer are.
func TestMoreFunctionsOfAFileAreProbed(t *testing.T) {
	at := func(linked bool, offsets ...uint64) provider.File {
		library := &provider.Library{Linked: linked}
		for _, offset := range offsets {
			library.Targets = append(library.Targets, provider.Target{Offset: offset})
		}
		return provider.File{ID: provider.FileID{Inode: 1}, Library: library}
	}
	for _, tc := range []struct {
		probed, file provider.File
		want         bool
	}{
		{at(true, 16, 32), at(true, 16, 32), false},
		{at(true, 16, 32), at(true, 32), false},
		{at(true, 16, 32), at(true, 16, 32, 48), true},
		{at(false, 16, 32), at(false, 48), false},
	} {
		l := &libraries{attachments: map[fileKey]*attachment{keyOf(tc.file.ID): {file: tc.probed}}}
		if got := l.wants(tc.file); got != tc.want {
			t.Errorf("probed at %v and known at %v: wanted %v", tc.probed.Library.Targets, tc.file.Library.Targets, got)
		}
	}
}
