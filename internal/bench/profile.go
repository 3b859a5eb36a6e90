package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The parts of the time in the kernel, by the functions that it is spent in.
// What is in none of them is the trap: what a probe without a program costs.
const (
	partPrograms = "the programs themselves"
	partReads    = "reading the memory of the process"
	partThread   = "finding the state of the thread"
	partClock    = "reading the clock"
	partMaps     = "looking up in hash maps"
	partTrap     = "the trap"
)

var parts = []string{partTrap, partReads, partPrograms, partThread, partClock, partMaps}

// partOf are the beginnings of the names of functions.
var partOf = []struct{ prefix, part string }{
	{"bpf_prog_", partPrograms},
	{"bpf_probe_read_user", partReads},
	{"copy_from_user_nofault", partReads},
	{"__copy_from_user", partReads},
	{"rep_movs_alternative", partReads},
	{"__check_object_size", partReads},
	{"check_stack_object", partReads},
	{"__check_heap_object", partReads},
	{"__virt_addr_valid", partReads},
	{"is_vmalloc_addr", partReads},
	{"bpf_task_storage_", partThread},
	{"bpf_local_storage_", partThread},
	{"bpf_get_current_task", partThread},
	{"bpf_ktime_get_ns", partClock},
	{"ktime_get_mono_fast_ns", partClock},
	{"read_tsc", partClock},
	{"htab_", partMaps},
	{"__htab_", partMaps},
	{"lookup_", partMaps},
}

type profilePart struct {
	Part  string  `json:"part"`
	Share float64 `json:"share"`
}

// profile samples where the kernel spends the time of posts and completions
// while the tracer observes them.
func (b *bench) profile(ctx context.Context) ([]profilePart, error) {
	file := filepath.Join(outDirectory, "perf.data")
	record := exec.CommandContext(ctx, "perf", "record", "-q", "-e", "cpu-clock:k", "-F", "10000", "-o", file, "--",
		loopPath, "--provider", b.library, "--cpu", strconv.Itoa(b.cpu), "--cell-ms", "300", "--empty", "0")
	if out, err := record.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("sampling with perf: %w: %.200s", err, out)
	}
	report := exec.CommandContext(ctx, "perf", "report", "-i", file, "--stdio", "-q", "-F", "overhead,sym", "-t", ";")
	out, err := report.Output()
	if err != nil {
		return nil, fmt.Errorf("reading what perf sampled: %w", err)
	}
	return parseProfile(string(out))
}

// parseProfile adds up lines of a share and a function.
func parseProfile(report string) ([]profilePart, error) {
	shares := map[string]float64{}
	total := 0.0
	for line := range strings.Lines(report) {
		share, symbol, ok := strings.Cut(line, ";")
		if !ok {
			continue
		}
		percent, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(share), "%"), 64)
		if err != nil {
			return nil, fmt.Errorf("the share in %q: %w", line, err)
		}
		fields := strings.Fields(symbol)
		shares[part(fields[len(fields)-1])] += percent
		total += percent
	}
	if total == 0 {
		return nil, fmt.Errorf("perf sampled nothing: %.200q", report)
	}
	var profile []profilePart
	for _, name := range parts {
		profile = append(profile, profilePart{name, shares[name] / total})
	}
	return profile, nil
}

func part(function string) string {
	i := slices.IndexFunc(partOf, func(p struct{ prefix, part string }) bool { return strings.HasPrefix(function, p.prefix) })
	if i < 0 {
		return partTrap
	}
	return partOf[i].part
}
