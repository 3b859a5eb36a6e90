package doctor

import (
	"context"
	"fmt"
	"runtime"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// kernelFacts are what the kernel is and has.
type kernelFacts struct {
	release, architecture string
	// sysfs says that it is mounted.
	sysfs bool
	// types says that it has its own type information (BTF).
	types bool
	// coreModule says that the RDMA core is loaded as a module, coreTypes that there is
	// type information of it.
	coreModule, coreTypes bool
}

func (s *System) checkKernel(context.Context) []Finding {
	return judgeKernel(kernelFacts{
		release: s.release(), architecture: runtime.GOARCH,
		sysfs: s.exists("sys/class"), types: s.exists("sys/kernel/btf/vmlinux"),
		// What is built in has no such file, and its types are the kernel's.
		coreModule: s.exists("sys/module/ib_core/initstate"), coreTypes: s.exists("sys/kernel/btf/ib_core"),
	})
}

func judgeKernel(f kernelFacts) []Finding {
	if f.release == "" {
		return []Finding{{Level: Unknown, What: "the release of the kernel cannot be read from /proc/sys/kernel/osrelease"}}
	}
	var findings []Finding
	if tracer.OlderKernel(f.release, 5, 15) {
		findings = append(findings, Finding{
			Level: Problem, What: "Linux " + f.release + " is too old", Means: "Tracing needs " + tracer.MinimumKernel + " or newer.",
			Do: "Boot a newer kernel.",
		})
	}
	switch {
	case !f.sysfs:
		findings = append(findings, Finding{
			Level: Problem, What: "no sysfs is mounted at /sys", Means: "Tracing does not start, and nothing is known of devices.",
			Do: "Run this on the host, or mount its /sys.",
		})
	case !f.types:
		findings = append(findings, Finding{
			Level: Problem, What: "the kernel has no type information: /sys/kernel/btf/vmlinux is not there",
			Means: "Tracing does not start.", Do: "Boot a kernel with CONFIG_DEBUG_INFO_BTF, as those of distributions from 5.15 on are.",
		})
	}
	if f.coreModule && !f.coreTypes {
		findings = append(findings, Finding{
			Level: Warning, What: "the module ib_core has no type information: /sys/kernel/btf/ib_core is not there",
			Means: "Processes are traced. CQ numbers, addresses, asynchronous events and consumers in the kernel are not seen.",
			Do:    "Use modules that were built with CONFIG_DEBUG_INFO_BTF_MODULES; those of MLNX_OFED need pahole and the kernel's vmlinux when they are built.",
		})
	}
	if f.architecture != "amd64" {
		findings = append(findings, Finding{
			Level: Note, What: "the architecture is " + f.architecture, Means: "amd64 is tested; arm64 is built and has not been executed.",
		})
	}
	if worst(findings) < Warning {
		findings = append([]Finding{{What: fmt.Sprintf("Linux %s is new enough (%s) and has type information%s", f.release, tracer.MinimumKernel, f.ofCore())}}, findings...)
	}
	return findings
}

// ofCore tells of the RDMA core where there is one.
func (f *kernelFacts) ofCore() string {
	if f.coreModule {
		return ", also of the RDMA core"
	}
	return ""
}
