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
	if l.refuse(file) || !l.refuse(file) {
		t.Error("the first refusal is new, the second is not")
	}
	if l.wants(file) || !l.wants(other) {
		t.Error("a refused file is left alone, others are not")
	}
	age := func(d time.Duration) {
		l.refused[keyOf(file)] = refusal{id: file, until: l.refused[keyOf(file)].until.Add(-d)}
	}
	age(refusedTime)
	if !l.wants(file) {
		t.Error("after a while it is tried again")
	}
	age(10 * refusedTime)
	l.refuse(other)
	if _, kept := l.refused[keyOf(file)]; kept {
		t.Error("a refusal of long ago is kept")
	}
}
