package report

import (
	"fmt"
	"strings"
)

// KernelVerbs is what tracing cost a workload that posts and polls in the kernel.
type KernelVerbs struct {
	Workload string `json:"workload"`
	// Size is of one I/O, IOs are those of one run, one after the other.
	Size int `json:"size_bytes"`
	IOs  int `json:"ios"`
	// Untraced and Traced are I/Os a second, in the order of the runs, the medians
	// those of them.
	Untraced       []float64 `json:"untraced_ios_per_s"`
	Traced         []float64 `json:"traced_ios_per_s"`
	UntracedMedian float64   `json:"untraced_median_ios_per_s"`
	TracedMedian   float64   `json:"traced_median_ios_per_s"`
	// Ratio is the traced median divided by the untraced one.
	Ratio float64 `json:"ratio"`
	// Programs are those on the verbs, by the kernel's account of a run of its own
	// (kernel.bpf_stats_enabled).
	Programs []ProgramCost `json:"programs"`
}

// ProgramCost is how often a BPF program ran and how long in all.
type ProgramCost struct {
	Name        string `json:"name"`
	Runs        uint64 `json:"runs"`
	Nanoseconds uint64 `json:"ns"`
}

// NewKernelVerbs sums up the runs of a workload, in I/Os a second. Each side has at
// least one.
func NewKernelVerbs(workload string, size, ios int, untraced, traced []float64, programs []ProgramCost) KernelVerbs {
	k := KernelVerbs{
		Workload: workload, Size: size, IOs: ios, Untraced: untraced, Traced: traced,
		UntracedMedian: median(untraced), TracedMedian: median(traced), Programs: programs,
	}
	k.Ratio = k.TracedMedian / k.UntracedMedian
	return k
}

func (k KernelVerbs) String() string {
	var runs, total uint64
	var programs []string
	for _, p := range k.Programs {
		runs += p.Runs
		total += p.Nanoseconds
		programs = append(programs, fmt.Sprintf("%s %.2f", p.Name, float64(p.Nanoseconds)/float64(p.Runs)/1000))
	}
	ios := float64(k.IOs)
	return fmt.Sprintf("%s of %d bytes: %.0f I/Os a second untraced, %.0f traced, ratio %.2f, medians of %d and %d runs; programs ran %.1f times and %.1f µs for an I/O; µs a run: %s",
		k.Workload, k.Size, k.UntracedMedian, k.TracedMedian, k.Ratio, len(k.Untraced), len(k.Traced),
		float64(runs)/ios, float64(total)/ios/1000, strings.Join(programs, ", "))
}
