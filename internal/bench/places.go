package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// place is one uprobe link on the measured library, as the kernel has it. What
// the tracer is asked for does not matter: this is where it stands.
type place struct {
	link     link.ID
	program  ebpf.ProgramID
	offsets  []uint64
	isReturn bool
	// isOwn says that it belongs to the observer that is measured.
	isOwn bool
}

// flagReturn is BPF_F_UPROBE_MULTI_RETURN of include/uapi/linux/bpf.h.
const flagReturn = 1

// self names this process in /proc.
const self = "self"

// placesOn lists the uprobe links on a file; those of the observer, a process
// by its name in /proc, are its own.
func placesOn(file, observer string) ([]place, error) {
	own, err := objectsOf(observer)
	if err != nil {
		return nil, err
	}
	var places []place
	links := new(link.Iterator)
	for links.Next() {
		info, err := links.Link.Info()
		if err != nil || info.Type != link.UprobeMultiType {
			continue // It was detached at this moment, or is something else.
		}
		multi := info.UprobeMulti()
		if multi == nil || multi.File != file {
			continue
		}
		p := place{
			link:     info.ID,
			program:  info.Program,
			isReturn: multi.Flags&flagReturn != 0,
			isOwn:    own.links[uint32(info.ID)],
		}
		known, ok := multi.Offsets()
		if !ok {
			return nil, fmt.Errorf("the kernel does not tell where link %d stands", info.ID)
		}
		for _, o := range known {
			p.offsets = append(p.offsets, o.Offset)
		}
		places = append(places, p)
	}
	if err := links.Err(); err != nil {
		return nil, fmt.Errorf("listing BPF links: %w", err)
	}
	return places, nil
}

func own(places []place) []place {
	return slices.DeleteFunc(slices.Clone(places), func(p place) bool { return !p.isOwn })
}

func foreign(places []place) bool {
	return slices.ContainsFunc(places, func(p place) bool { return !p.isOwn })
}

// sameLinks reports whether nothing was attached or detached in between.
func sameLinks(a, b []place) bool {
	return slices.EqualFunc(a, b, func(x, y place) bool { return x.link == y.link })
}

// functions are the offsets in the measured library by function.
type functions struct {
	postSend, pollCQ provider.Target
}

// findFunctions resolves the functions of the library as the tracer does, in a
// process that has it in use.
func findFunctions(pid int, file string) (functions, error) {
	files, err := provider.NewFinder("").Process(pid)
	if err != nil {
		return functions{}, fmt.Errorf("looking into process %d: %w", pid, err)
	}
	for _, f := range files {
		if f.DisplayPath != file {
			continue
		}
		send, poll := f.Library.Find(provider.PostSend), f.Library.Find(provider.PollCQ)
		if len(send) != 1 || len(poll) != 1 {
			return functions{}, errors.New("the functions of " + file + " were not found")
		}
		return functions{postSend: send[0], pollCQ: poll[0]}, nil
	}
	return functions{}, fmt.Errorf("process %d does not use %s", pid, file)
}

// returnsFrom reports whether any of the places is a return probe of a function.
func returnsFrom(places []place, target provider.Target) bool {
	return slices.ContainsFunc(places, func(p place) bool {
		return p.isReturn && (slices.Contains(p.offsets, target.ReturnOffset) || slices.Contains(p.offsets, target.Offset))
	})
}
