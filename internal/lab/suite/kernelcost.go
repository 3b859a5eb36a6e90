package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/lab/report"
)

const (
	// kernelCostRounds is how often the workload runs traced. It runs half as often
	// before that, untraced, and after it.
	kernelCostRounds = 6
	// kernelCostIOs are those of one run, of a page each.
	kernelCostIOs = 600
	bpfStats      = "/proc/sys/kernel/bpf_stats_enabled"
)

// kernelVerbsCost measures what an NVMe over Fabrics device on a null block device
// does without the collector, with it, and without it again. Like throughput it is a
// measurement. Asserted is that every traced completion was counted.
func kernelVerbsCost(ctx context.Context, g *Guest) (string, error) {
	if g.collector != nil {
		if err := g.stopCollector(ctx); err != nil {
			return "", err
		}
	}
	before, _, err := measureNVMe(ctx, kernelCostRounds/2)
	if err != nil {
		return "", fmt.Errorf("untraced: %w", err)
	}
	traced, programs, err := g.measureTracedNVMe(ctx)
	if err != nil {
		return "", fmt.Errorf("traced: %w", err)
	}
	after, _, err := measureNVMe(ctx, kernelCostRounds-kernelCostRounds/2)
	if err != nil {
		return "", fmt.Errorf("untraced again: %w", err)
	}
	k := report.NewKernelVerbs("reads from NVMe over Fabrics", os.Getpagesize(), kernelCostIOs, slices.Concat(before, after), traced, programs)
	g.kernelVerbs = append(g.kernelVerbs, k)
	return k.String(), nil
}

// measureTracedNVMe measures beside a collector as it comes, and then once more for
// what each program takes: to measure that costs, too.
func (g *Guest) measureTracedNVMe(ctx context.Context) (rates []float64, programs []report.ProgramCost, err error) {
	if err := g.startCollector(ctx, mode{name: "default", polls: "site"}); err != nil {
		return nil, nil, err
	}
	c := g.collector
	if err := c.mark(ctx, g.worked()); err != nil {
		return nil, nil, err
	}
	w, err := g.startCQWitness()
	if err != nil {
		return nil, nil, err
	}
	rates, _, err = measureNVMe(ctx, kernelCostRounds)
	polled, errWitness := w.stop()
	if err := errors.Join(err, errWitness); err != nil {
		return nil, nil, err
	}
	if err := c.consumersSettle(ctx, polled, nvmeHost, nvmeTarget); err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(bpfStats, []byte("1"), 0o644); err != nil {
		return nil, nil, err
	}
	_, programs, err = measureNVMe(ctx, 1)
	err = errors.Join(err, os.WriteFile(bpfStats, []byte("0"), 0o644))
	if err == nil && len(programs) == 0 {
		err = errors.New("no program on the kernel's verbs ran")
	}
	return rates, programs, errors.Join(err, g.stopCollector(ctx), g.nothingLeft(ctx))
}

// measureNVMe connects, reads some times, and returns the I/Os a second of each, and
// what programs on the kernel's verbs did meanwhile, if that is counted.
func measureNVMe(ctx context.Context, rounds int) (rates []float64, programs []report.ProgramCost, err error) {
	n, err := connectNVMe(ctx)
	if err == nil {
		// The first reads find a connection that has never been used.
		_, err = n.readRate(kernelCostIOs / 10)
	}
	before, errBefore := verbProgramCosts(ctx)
	err = errors.Join(err, errBefore)
	for range rounds {
		if err != nil {
			break
		}
		var rate float64
		rate, err = n.readRate(kernelCostIOs)
		rates = append(rates, rate)
	}
	after, errAfter := verbProgramCosts(ctx)
	programs, errCosts := costsSince(before, after)
	return rates, programs, errors.Join(err, errAfter, errCosts, n.disconnect(ctx))
}

// costsSince is what programs did between two accounts, by name. Programs that were
// loaded anew meanwhile began at 0: that is an error.
func costsSince(before, after map[string]report.ProgramCost) (programs []report.ProgramCost, err error) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if after[name].Runs < before[name].Runs || after[name].Nanoseconds < before[name].Nanoseconds {
			return nil, fmt.Errorf("the account of %s fell: %+v, before %+v", name, after[name], before[name])
		}
		p := report.ProgramCost{Name: name, Runs: after[name].Runs - before[name].Runs, Nanoseconds: after[name].Nanoseconds - before[name].Nanoseconds}
		if p.Runs > 0 {
			programs = append(programs, p)
		}
	}
	return programs, nil
}

// readRate reads so many pages, one after the other and past the page cache, and
// returns how many a second.
func (n *nvmf) readRate(ios int) (rate float64, err error) {
	fd, err := unix.Open(n.device(), unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", n.device(), err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	page := alignedPage()
	begin := time.Now()
	for i := range ios {
		if _, err := unix.Pread(fd, page, int64(i*len(page))); err != nil {
			return 0, fmt.Errorf("read page %d of %s: %w", i, n.device(), err)
		}
	}
	return float64(ios) / time.Since(begin).Seconds(), nil
}

// alignedPage is a page of memory, as O_DIRECT wants it.
func alignedPage() []byte {
	size := os.Getpagesize()
	room := make([]byte, 2*size)
	begin := -int(uintptr(unsafe.Pointer(&room[0]))&uintptr(size-1)) & (size - 1)
	return room[begin : begin+size]
}

// verbProgramCosts are those of the programs on the kernel's verbs, by name.
func verbProgramCosts(ctx context.Context) (map[string]report.ProgramCost, error) {
	out, err := run(ctx, "bpftool", "--json", "prog", "list")
	if err != nil {
		return nil, err
	}
	var list []struct {
		Name        string `json:"name"`
		Runs        uint64 `json:"run_cnt"`
		Nanoseconds uint64 `json:"run_time_ns"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("bpftool prog list: %w", err)
	}
	costs := map[string]report.ProgramCost{}
	for _, p := range list {
		if strings.HasPrefix(p.Name, "trace_") || strings.HasPrefix(p.Name, "probe_") || p.Name == "cq_scheduled" {
			before := costs[p.Name]
			costs[p.Name] = report.ProgramCost{Name: p.Name, Runs: before.Runs + p.Runs, Nanoseconds: before.Nanoseconds + p.Nanoseconds}
		}
	}
	return costs, nil
}
