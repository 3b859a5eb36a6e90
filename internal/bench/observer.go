package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// observer is a way to watch the measured library.
type observer interface {
	// attach returns once the library is observed.
	attach(ctx context.Context) error
	detach() error
}

// settler is an observer that changes under traffic after it attached.
type settler interface {
	// settled reports whether it has come to rest.
	settled() (bool, error)
}

// nobody is the untraced mode.
type nobody struct{}

func (nobody) attach(context.Context) error { return nil }
func (nobody) detach() error                { return nil }

// tracerObserver is the tracer, configured as told.
type tracerObserver struct {
	library string
	config  tracer.Config
	// rests is the mode that poll_cq is observed in when it has settled.
	rests  string
	tracer *tracer.Tracer
}

// settled reports whether poll_cq of the library is observed in its last mode.
func (o *tracerObserver) settled() (bool, error) {
	snapshot, err := o.tracer.Snapshot()
	if err != nil {
		return false, err
	}
	for _, probe := range snapshot.Probes {
		if probe.Library == o.library && slices.Contains(probe.Functions, "poll_cq") {
			return probe.Mode == o.rests, nil
		}
	}
	return false, nil
}

// shipped is the tracer as it is shipped. Nothing is slow for it: the loop
// leaves completions lying on purpose, and what slow ones cost is measured on
// the agent.
func shipped(library string) *tracerObserver {
	return &tracerObserver{library: library, rests: "site", config: tracer.Config{
		Threshold: time.Hour,
		Rate:      func(string) (float64, bool) { return linkRate, true },
	}}
}

// entryAndReturn is the tracer without completion sites.
func entryAndReturn(library string) *tracerObserver {
	o := shipped(library)
	o.config.EntryReturn = true
	o.rests = "windows"
	return o
}

const (
	attachLimit = 15 * time.Second
	checkEvery  = 10 * time.Millisecond
	// linkRate is what the measured device is said to carry, in bytes a second,
	// so that the programs do all their arithmetic.
	linkRate = 400e9 / 8
)

func (o *tracerObserver) attach(ctx context.Context) error {
	t, err := tracer.Start(ctx, o.config)
	if err != nil {
		return err
	}
	o.tracer = t
	go drain(t.Completions())
	go drain(t.Stuck())
	err = waitFor(ctx, attachLimit, func() (bool, error) {
		places, err := placesOn(o.library, self)
		return len(own(places)) > 0, err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("the tracer is not on %s: %w", o.library, err), o.detach())
	}
	return nil
}

func (o *tracerObserver) detach() error { return o.tracer.Close() }

func drain[T any](values <-chan T) {
	for range values {
	}
}

// bareObserver is an empty program at the places of the tracer: what no
// observer at these places can go below.
type bareObserver struct {
	library string
	// places are those of the tracer, link by link.
	places  []place
	program *ebpf.Program
	links   []link.Link
}

func (o *bareObserver) attach(context.Context) error {
	if len(o.places) == 0 {
		return errors.New("the places of the tracer are not known")
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:         "bench_empty",
		Type:         ebpf.Kprobe,
		AttachType:   ebpf.AttachTraceUprobeMulti,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "Dual BSD/GPL",
	})
	if err != nil {
		return fmt.Errorf("loading an empty program: %w", err)
	}
	o.program = program
	executable, err := link.OpenExecutable(o.library)
	if err != nil {
		return errors.Join(err, o.detach())
	}
	for _, p := range o.places {
		attach := executable.UprobeMulti
		if p.isReturn {
			attach = executable.UretprobeMulti
		}
		l, err := attach(nil, program, &link.UprobeMultiOptions{Addresses: p.offsets})
		if err != nil {
			return errors.Join(fmt.Errorf("attaching an empty program: %w", err), o.detach())
		}
		o.links = append(o.links, l)
	}
	return nil
}

func (o *bareObserver) detach() error {
	var errs []error
	for _, l := range o.links {
		errs = append(errs, l.Close())
	}
	o.links = nil
	return errors.Join(append(errs, o.program.Close())...)
}

// waitFor asks until the answer is yes.
func waitFor(ctx context.Context, limit time.Duration, ask func() (bool, error)) error {
	for deadline := time.Now().Add(limit); ; {
		yes, err := ask()
		if err != nil || yes {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s", limit)
		}
		if err := sleep(ctx, checkEvery); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
