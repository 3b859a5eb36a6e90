package tracer

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// Programs that are loaded later are not among those of the start, and are asked for
// by the functions that need them alone.
func TestLaterPrograms(t *testing.T) {
	spec, err := bpf.LoadTracker()
	if err != nil {
		t.Fatal(err)
	}
	all := len(spec.Programs)
	later := takeLater(spec, extendedPolls)
	if len(later.spec.Programs) != len(extendedPolls) || len(spec.Programs) != all-len(extendedPolls) {
		t.Fatalf("of %d programs %d are loaded later and %d at the start", all, len(later.spec.Programs), len(spec.Programs))
	}
	for name, program := range later.spec.Programs {
		if program == nil || program.Type != ebpf.Kprobe {
			t.Errorf("%s is %+v", name, program)
		}
	}
	post := []wantedFunction{{key: roleKey(bpf.TrackerExtendedRoleROLE_COMPLETE)}}
	poll := []wantedFunction{post[0], {key: roleKey(bpf.TrackerExtendedRoleROLE_END_POLL)}}
	if err := later.check(post); err != nil || later.needed {
		t.Errorf("of posts: %v, needed %v", err, later.needed)
	}
	if err := later.check(poll); !errors.Is(err, errNotLoaded) || !later.needed {
		t.Errorf("of polls: %v, needed %v", err, later.needed)
	}
	refused := errors.New("refused")
	for _, want := range []error{nil, refused} {
		tried := laterPrograms{err: want}
		if err := tried.check(poll); !errors.Is(err, want) {
			t.Errorf("once they were tried: %v, not %v", err, want)
		}
	}
	if tried := (laterPrograms{err: refused}); tried.check(post) != nil {
		t.Error("posts need programs that were refused")
	}
}
