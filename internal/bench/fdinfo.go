package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// bpfObjects are the BPF objects that a process holds by file descriptor.
type bpfObjects struct {
	links, programs map[uint32]bool
	// maps has the memory of each, by the kernel's own account.
	maps map[uint32]uint64
}

// objectsOf reads /proc/PID/fdinfo. Descriptors come and go meanwhile; those
// that are gone are left out.
func objectsOf(process string) (bpfObjects, error) {
	objects := bpfObjects{links: map[uint32]bool{}, programs: map[uint32]bool{}, maps: map[uint32]uint64{}}
	directory := filepath.Join("/proc", process, "fdinfo")
	entries, err := os.ReadDir(directory)
	if err != nil {
		return objects, fmt.Errorf("listing the BPF objects of process %s: %w", process, err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			continue
		}
		objects.add(string(text))
	}
	return objects, nil
}

// add takes the lines of one descriptor (bpf_map_show_fdinfo,
// bpf_prog_show_fdinfo and bpf_link_show_fdinfo in kernel/bpf/syscall.c).
func (o *bpfObjects) add(text string) {
	values := map[string]uint64{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64); err == nil {
			values[key] = n
		}
	}
	if id, ok := values["link_id"]; ok {
		o.links[uint32(id)] = true
		return // It names its program, which is not a descriptor of it.
	}
	if id, ok := values["prog_id"]; ok {
		o.programs[uint32(id)] = true
	}
	if id, ok := values["map_id"]; ok {
		o.maps[uint32(id)] = values["memlock"]
	}
}

// mapBytes is the memory of all maps together.
func (o *bpfObjects) mapBytes() uint64 {
	var sum uint64
	for _, bytes := range o.maps {
		sum += bytes
	}
	return sum
}
