package tracer

import (
	"testing"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// Any user can start more programs than are looked into. They have nothing to do with
// RDMA, and are no library that was missed; a process that opened a device has.
func TestOnlyWhatUsesRDMAIsMissed(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   bpf.TrackerControlKind
		missed uint64
	}{
		"a program starts":   {bpf.TrackerControlKindCONTROL_NEW_FILE, 0},
		"a device is opened": {bpf.TrackerControlKindCONTROL_NEW_CONTEXT, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tr, _ := logged()
			// What closes looks at nothing more.
			tr.closed, tr.looking = true, map[uint32]chan struct{}{}
			for tgid := range uint32(mostLooks) {
				tr.looking[tgid] = make(chan struct{}, 1)
			}
			event := bpf.TrackerControlEvent{Kind: uint32(tc.kind), Tgid: mostLooks}
			if err := tr.control(t.Context(), event); err != nil {
				t.Fatal(err)
			}
			if got := tr.missed.Load(); got != tc.missed {
				t.Errorf("%d missed, want %d", got, tc.missed)
			}
			event.Tgid = 0
			if err := tr.control(t.Context(), event); err != nil {
				t.Fatal(err)
			}
			if got := tr.missed.Load(); got != tc.missed {
				t.Errorf("of one that is looked into %d are missed", got-tc.missed)
			}
		})
	}
}

// A program that has ended before its library could be opened misses nothing.
func TestLibraryOfAnEndedProcessIsNotMissed(t *testing.T) {
	tr, lines := follower(linkedFile(1))
	gone := provider.File{ID: provider.FileID{Inode: 2}, Library: &provider.Library{}, Path: "/proc/7/root/lib", PID: 7}
	if _, err := tr.probeFile(gone); err != nil {
		t.Fatal(err)
	}
	if got := tr.missed.Load(); got != 0 || len(lines()) != 0 {
		t.Errorf("%d missed, and told: %q", got, lines())
	}
}
