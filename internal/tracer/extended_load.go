package tracer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// extendedPolls are the programs on polls through the extended verbs. The kernel
// takes two fifths of a start to verify them, and most hosts never need them: they
// are loaded when functions for them are found.
var extendedPolls = []string{bpf.TrackerProgEnterExtendedPoll, bpf.TrackerProgLeaveNextPoll}

// errNotLoaded says that functions can be probed once programs are loaded.
var errNotLoaded = errors.New("programs for the extended verbs are not loaded yet")

// laterPrograms are programs that are loaded when they are needed. The tracer's mu
// guards what is in it.
type laterPrograms struct {
	// spec is nil once it was tried to load them, with err.
	spec   *ebpf.CollectionSpec
	err    error
	needed bool
}

// takeLater takes programs out of a spec, to be loaded later on the same maps.
func takeLater(spec *ebpf.CollectionSpec, names []string) laterPrograms {
	later := withPrograms(spec, names...)
	for _, name := range names {
		delete(spec.Programs, name)
	}
	return laterPrograms{spec: later}
}

// check tells whether the functions can be probed now. errNotLoaded asks for the
// programs that they need.
func (l *laterPrograms) check(functions []wantedFunction) error {
	needs := slices.ContainsFunc(functions, func(w wantedFunction) bool {
		return slices.ContainsFunc(programsOf(w.key.role()), func(p extendedProgram) bool {
			return slices.Contains(extendedPolls, p.name)
		})
	})
	switch {
	case !needs:
		return nil
	case l.spec != nil:
		l.needed = true
		return errNotLoaded
	default:
		return l.err
	}
}

// loadLater loads what probing functions was put off for, and asks for another look
// at these. Only the goroutine that follows the extended verbs calls it; nobody
// waits for the verifier.
func (t *Tracer) loadLater(ctx context.Context) {
	t.mu.Lock()
	spec, needed := t.side.later.spec, t.side.later.needed
	t.mu.Unlock()
	if spec == nil || !needed {
		return
	}
	programs, err := loadPrograms(ctx, spec, t.side.allMaps, btf.NewCache(), t.side.loading)
	if ctx.Err() != nil && err != nil {
		return
	}
	if err != nil {
		err = fmt.Errorf("polls through the extended verbs: %w", loadError(err))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.side.collection.Programs, programs)
	t.side.later = laterPrograms{err: err}
	t.wakeExtended()
}
