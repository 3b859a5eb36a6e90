package tracer

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// Interrupts and softirqs that keep a thread from polling are noted in the kernel.
// The programs run for every interrupt of every CPU, and so stand only while
// completions are slow. What the first slow ones waited for is not known for that.

// interruptPrograms are the programs on interrupts. A kernel may be built without
// the tracepoints; then nothing is known of interrupts.
var interruptPrograms = []string{
	bpf.TrackerProgInterruptExit, bpf.TrackerProgInterruptEntry,
	bpf.TrackerProgSoftirqExit, bpf.TrackerProgSoftirqEntry,
}

// interruptsTime is how long interrupts are watched on after the last turn in which
// something was slow: what comes again within it is known from its beginning.
const interruptsTime = 10 * time.Second

// interrupts are watched while something is slow.
type interrupts struct {
	programs []*ebpf.Program
	// since tells the programs from when on all of them stand.
	since *ebpf.Variable
	// lasting is interruptsTime, but for tests; until is when watching ends.
	lasting time.Duration
	until   time.Time
	links   []link.Link
	closer  closer
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

func newInterrupts(collection *ebpf.Collection, lasting time.Duration) *interrupts {
	i := &interrupts{since: collection.Variables[bpf.TrackerVarInterruptsSinceNs], lasting: lasting}
	for _, name := range interruptPrograms {
		if program := collection.Programs[name]; program != nil {
			i.programs = append(i.programs, program)
		}
	}
	return i
}

// turn begins or ends to watch interrupts; slow says that completions were slow since
// the last turn. After an error it is not tried again.
func (i *interrupts) turn(now time.Time, slow bool) error {
	switch watching, wanted := i.watching(), i.wanted(now, slow); {
	case watching && !wanted:
		return i.end()
	case watching || !wanted || i.closer.busy():
		return i.closer.takeErrors()
	}
	if err := i.begin(); err != nil {
		i.programs = nil
		return errors.Join(fmt.Errorf("what interrupts take from threads is not known from now on: %w", err), i.end())
	}
	return nil
}

// wanted says whether to watch interrupts from now on.
func (i *interrupts) wanted(now time.Time, slow bool) bool {
	if slow {
		i.until = now.Add(i.lasting)
	}
	return now.Before(i.until) && len(i.programs) > 0
}

// watching reports whether the programs stand.
func (i *interrupts) watching() bool { return len(i.links) > 0 }

func (i *interrupts) begin() error {
	for _, program := range i.programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		if err != nil {
			return fmt.Errorf("attaching to a tracepoint for the program %s: %w", program, err)
		}
		i.links = append(i.links, l)
	}
	now, err := monotonic()
	if err != nil {
		return err
	}
	return i.tell(now)
}

// end takes the programs off in the background.
func (i *interrupts) end() error {
	err := i.tell(0)
	i.closer.closeAll(&i.links)
	return err
}

func (i *interrupts) tell(since uint64) error {
	if err := i.since.Set(since); err != nil {
		return fmt.Errorf("telling the programs since when interrupts are watched: %w", err)
	}
	return nil
}
