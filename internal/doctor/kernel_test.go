package doctor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

func TestKernel(t *testing.T) {
	good := kernelFacts{release: "6.12.95-amd64", architecture: "amd64", sysfs: true, types: true, coreModule: true, coreTypes: true}
	for name, test := range map[string]struct {
		change func(*kernelFacts)
		want   []expected
	}{
		"good":           {func(*kernelFacts) {}, []expected{{OK, "type information, also of the RDMA core"}}},
		"core not there": {func(f *kernelFacts) { f.coreModule, f.coreTypes = false, false }, []expected{{OK, "has type information |"}}},
		"old":            {func(f *kernelFacts) { f.release = "5.14.0-427.el9" }, []expected{{Problem, "5.15 or newer"}}},
		"no types":       {func(f *kernelFacts) { f.types = false }, []expected{{Problem, "CONFIG_DEBUG_INFO_BTF"}}},
		"no sysfs":       {func(f *kernelFacts) { f.sysfs, f.types = false, false }, []expected{{Problem, "mounted at /sys"}}},
		"OFED":           {func(f *kernelFacts) { f.coreTypes = false }, []expected{{Warning, "CQ numbers, addresses"}}},
		"arm64":          {func(f *kernelFacts) { f.architecture = "arm64" }, []expected{{OK, "new enough"}, {Note, "has not been executed"}}},
		"unknown":        {func(f *kernelFacts) { f.release = "" }, []expected{{Unknown, "cannot be read"}}},
	} {
		f := good
		test.change(&f)
		expect(t, name, judgeKernel(f), test.want...)
	}
}

func TestKernelIsRead(t *testing.T) {
	s := machine(t, fabrictest.SoftRoCE, noCollector{})
	assert.Equal(t, Problem, worst(s.checkKernel(t.Context())), "the tree has no type information")
	s.write(t, "sys/kernel/btf/vmlinux", "")
	assert.Equal(t, OK, worst(s.checkKernel(t.Context())))
	s.write(t, "sys/module/ib_core/initstate", "live\n")
	assert.Equal(t, Warning, worst(s.checkKernel(t.Context())))
	s.write(t, "sys/kernel/btf/ib_core", "")
	assert.Equal(t, OK, worst(s.checkKernel(t.Context())))
}

func TestRestrictions(t *testing.T) {
	zero, two := 0, 2
	for name, test := range map[string]struct {
		facts restrictionFacts
		want  expected
	}{
		"none":            {restrictionFacts{}, expected{OK, "neither"}},
		"integrity":       {restrictionFacts{lockdown: "integrity", memfdNoexec: &zero}, expected{OK, "neither"}},
		"confidentiality": {restrictionFacts{lockdown: "confidentiality"}, expected{Warning, "lockdown=integrity"}},
		"container":       {restrictionFacts{otherPIDs: errors.New("of another PID namespace")}, expected{Warning, "hostPID: true"}},
		"memfd":           {restrictionFacts{memfdNoexec: &two}, expected{Note, "TMPDIR"}},
	} {
		expect(t, name, judgeRestrictions(test.facts), test.want)
	}
	s := machine(t, fabrictest.NoRDMA, noCollector{})
	s.write(t, "sys/kernel/security/lockdown", "none integrity [confidentiality]\n")
	s.write(t, "proc/sys/vm/memfd_noexec", "2\n")
	assert.Equal(t, []Level{Note, Warning}, levels(s.checkRestrictions(t.Context())))
}

func TestTrial(t *testing.T) {
	for name, test := range map[string]struct {
		trial tracer.Trial
		err   error
		want  []expected
	}{
		"works":        {tracer.Trial{Link: "multi"}, nil, []expected{{OK, "uprobe multi"}}},
		"old kernel":   {tracer.Trial{Link: "perf_event"}, nil, []expected{{OK, "before 6.6"}}},
		"without core": {tracer.Trial{Link: "multi", Core: errors.New("kprobe denied")}, nil, []expected{{OK, "tracing works"}, {Warning, "kprobe denied"}}},
		"not root":     {tracer.Trial{}, &tracer.CapabilityError{Missing: []string{"CAP_BPF"}, Op: "loading"}, []expected{{Unknown, "Run this as root"}}},
		"kernel":       {tracer.Trial{}, &tracer.KernelError{Need: "a verifier", Release: "6.1"}, []expected{{Problem, "lacks a verifier"}}},
		"other":        {tracer.Trial{}, errors.New("no memory"), []expected{{Problem, "no memory"}}},
	} {
		expect(t, name, judgeTrial(test.trial, test.err), test.want...)
	}
}
