package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// NewThroughput sums up the runs of one tool, in bytes a second. Each side has
// at least one.
func NewThroughput(tool string, size, iterations int, untraced, traced []float64) Throughput {
	t := Throughput{
		Tool: tool, Size: size, Iterations: iterations, Untraced: untraced, Traced: traced,
		UntracedMedian: median(untraced), TracedMedian: median(traced),
	}
	t.Ratio = t.TracedMedian / t.UntracedMedian
	return t
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func (t Throughput) String() string {
	const mega = 1 << 20
	return fmt.Sprintf("%s of %d bytes: %.2f MiB/s untraced, %.2f traced, ratio %.2f, medians of %d and %d runs",
		t.Tool, t.Size, t.UntracedMedian/mega, t.TracedMedian/mega, t.Ratio, len(t.Untraced), len(t.Traced))
}

// WriteThroughput writes what was measured on each kernel as JSON into
// throughput.json and, for reading, into throughput.txt of a directory, which says
// what disturbed it. Results of an earlier run are removed when nothing was measured.
func (r Report) WriteThroughput(dir string) error {
	asJSON, asText := filepath.Join(dir, "throughput.json"), filepath.Join(dir, "throughput.txt")
	var kernels []measured
	var text strings.Builder
	for _, k := range r.Kernels {
		if k.Throughput == nil && k.KernelVerbs == nil {
			continue
		}
		kernels = append(kernels, measured{k.Release, k.Throughput, k.KernelVerbs})
		for _, t := range k.Throughput {
			fmt.Fprintf(&text, "kernel %s, soft-RoCE, emulated: %s\n", k.Release, t)
		}
		for _, v := range k.KernelVerbs {
			fmt.Fprintf(&text, "kernel %s, soft-RoCE, emulated: %s\n", k.Release, v)
		}
	}
	if kernels == nil {
		return errors.Join(removed(asJSON), removed(asText))
	}
	if len(r.Kernels) > 1 {
		text.WriteString(besideEachOther)
	}
	err := writeJSON(asJSON, struct {
		Kernels []measured `json:"kernels"`
	}{kernels})
	return errors.Join(err, os.WriteFile(asText, []byte(text.String()), 0o644))
}

// besideEachOther says what the figures of more than one guest are good for.
const besideEachOther = "The guests run at once on one host: only the ratios say something, each of two sides in one guest.\n"

type measured struct {
	Release     string        `json:"release"`
	Throughput  []Throughput  `json:"throughput,omitempty"`
	KernelVerbs []KernelVerbs `json:"kernel_verbs,omitempty"`
}

func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
