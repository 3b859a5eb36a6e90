package tracer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// probedDriver is a driver whose verbs are probed.
type probedDriver struct {
	driver
	cookie uint32
	// links are how the functions are attached: "fentry" or "kprobe", programs the
	// names of what they run.
	how      string
	links    []link.Link
	programs []string
	// collections are the traced programs, one for each function.
	collections []*ebpf.Collection
}

// attachDriver probes the verbs of a driver, by fentry and fexit where the kernel
// takes that for all of them, else by kprobes. why tells what spoke against the
// first. On an error nothing stays attached.
func (s *kverbsSide) attachDriver(ctx context.Context, d driver, cookie uint32) (probed *probedDriver, why, err error) {
	if err := s.learnDrains(); err != nil {
		return nil, nil, err
	}
	probed = &probedDriver{driver: d, cookie: cookie, how: "fentry"}
	why = s.trace(ctx, probed)
	if why == nil {
		return probed, nil, nil
	}
	if err := errors.Join(probed.close(), ctx.Err()); err != nil {
		return nil, why, err
	}
	probed.how = "kprobe"
	if err := s.probe(ctx, probed); err != nil {
		return nil, why, errors.Join(err, probed.close())
	}
	return probed, why, nil
}

// trace attaches by fentry and fexit.
func (s *kverbsSide) trace(ctx context.Context, d *probedDriver) error {
	types := btf.NewCache()
	for v, function := range d.functions {
		if function == "" {
			continue
		}
		names := verbPrograms[v].traced
		collection, err := s.load(ctx, s.collection.Maps, names, function, types)
		if err != nil {
			return fmt.Errorf("fentry and fexit of %s: %w", function, err)
		}
		d.collections = append(d.collections, collection)
		for _, name := range names {
			l, err := link.AttachTracing(link.TracingOptions{
				Program: collection.Programs[name], AttachType: traceType(name), Cookie: uint64(d.cookie),
			})
			if err != nil {
				return fmt.Errorf("fentry and fexit of %s: %w", function, err)
			}
			d.attached(l, name)
		}
	}
	return nil
}

// traceType says whether a program is for the entry or the exit.
func traceType(program string) ebpf.AttachType {
	switch program {
	case bpf.KverbsProgTracePostSend, bpf.KverbsProgTracePostRecv, bpf.KverbsProgTracePostSrqRecv, bpf.KverbsProgTracePollCq:
		return ebpf.AttachTraceFEntry
	default:
		return ebpf.AttachTraceFExit
	}
}

// probe attaches by kprobes.
func (s *kverbsSide) probe(ctx context.Context, d *probedDriver) error {
	programs, err := s.programsForProbes(ctx)
	if err != nil {
		return fmt.Errorf("loading the programs for kprobes: %w", err)
	}
	options := &link.KprobeOptions{Cookie: uint64(d.cookie)}
	for v, function := range d.functions {
		if function == "" {
			continue
		}
		for i, name := range verbPrograms[v].probed {
			attach := link.Kprobe
			if i == 0 {
				attach = link.Kretprobe
			}
			l, err := attach(function, programs[name], options)
			if err != nil {
				return kprobeError(function, err)
			}
			d.attached(l, name)
		}
	}
	return nil
}

func (d *probedDriver) attached(l link.Link, program string) {
	d.links = append(d.links, l)
	d.programs = append(d.programs, program)
}

func (d *probedDriver) close() error {
	err := closeLinks(d.links)
	d.links, d.programs = nil, nil
	for _, c := range d.collections {
		c.Close()
	}
	d.collections = nil
	return err
}

// names are the functions that are probed.
func (d *probedDriver) names() []string {
	return slices.DeleteFunc(slices.Clone(d.functions[:]), func(name string) bool { return name == "" })
}

// skipped counts the runs of its own programs that the kernel skipped, and the hits
// of its kprobes that reached none.
func (d *probedDriver) skipped() (n skips) {
	for _, c := range d.collections {
		n.addPrograms(c.Programs)
	}
	for i, l := range d.links {
		n.add(d.programs[i], linkMisses(l))
	}
	return n
}
