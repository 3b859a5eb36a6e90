package tracer

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// What the scheduler did with the threads that post and poll is noted in the
// kernel: when they left their CPU and came back, when they were woken, and which
// interrupts kept them waiting.

// switchPrograms follow threads on and off their CPUs.
var switchPrograms = []string{bpf.TrackerProgSchedWaking, bpf.TrackerProgSchedSwitch}

// interruptPrograms are the programs on interrupts. A kernel may be built without
// the tracepoints; then nothing is known of interrupts.
var interruptPrograms = []string{
	bpf.TrackerProgInterruptExit, bpf.TrackerProgInterruptEntry,
	bpf.TrackerProgSoftirqExit, bpf.TrackerProgSoftirqEntry,
}

// dropInterrupts takes the programs on interrupts out where the kernel does not
// have all of their tracepoints.
func dropInterrupts(spec *ebpf.CollectionSpec, log *slog.Logger) error {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return fmt.Errorf("reading the kernel's type information: %w", err)
	}
	for _, name := range interruptPrograms {
		var tracepoint *btf.Typedef
		err := kernel.TypeByName("btf_trace_"+spec.Programs[name].AttachTo, &tracepoint)
		if err == nil {
			continue
		}
		if !errors.Is(err, btf.ErrNotFound) {
			return fmt.Errorf("looking for the tracepoint %s: %w", spec.Programs[name].AttachTo, err)
		}
		log.Info("this kernel does not tell of interrupts: what they take from a thread is not known", "tracepoint", spec.Programs[name].AttachTo)
		for _, name := range interruptPrograms {
			delete(spec.Programs, name)
		}
		return nil
	}
	return nil
}

// attachScheduler attaches the programs that note what the scheduler does.
func (k *kernelSide) attachScheduler() error {
	for _, name := range slices.Concat(switchPrograms, interruptPrograms) {
		program := k.collection.Programs[name]
		if program == nil {
			continue
		}
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		if err != nil {
			return fmt.Errorf("attaching to a tracepoint for the program %s: %w", name, err)
		}
		k.system = append(k.system, l)
	}
	return nil
}
