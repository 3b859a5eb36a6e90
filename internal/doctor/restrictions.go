package doctor

import (
	"context"
	"regexp"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// restrictionFacts are what the kernel denies everybody.
type restrictionFacts struct {
	// lockdown is none, integrity or confidentiality, "" when it is not known or there is
	// no such thing.
	lockdown string
	// otherPIDs is why processes have other numbers here than in the kernel, nil when they
	// do not.
	otherPIDs error
	// memfdNoexec is vm.memfd_noexec, nil when there is none.
	memfdNoexec *int
}

func (s *System) checkRestrictions(context.Context) []Finding {
	f := restrictionFacts{otherPIDs: tracer.CheckPIDNamespace(s.root), memfdNoexec: s.number("proc/sys/vm/memfd_noexec")}
	if chosen := regexp.MustCompile(`\[(\w+)\]`).FindStringSubmatch(s.line("sys/kernel/security/lockdown")); chosen != nil {
		f.lockdown = chosen[1]
	}
	return judgeRestrictions(f)
}

func judgeRestrictions(f restrictionFacts) []Finding {
	var findings []Finding
	if f.lockdown == "confidentiality" {
		// LOCKDOWN_KPROBES and LOCKDOWN_BPF_READ_KERNEL of include/linux/security.h are
		// denied from this mode on.
		findings = append(findings, Finding{
			Level: Warning, What: "kernel lockdown is in the mode confidentiality",
			Means: "The kernel denies kprobes and programs that read its memory, to root as well.",
			Do:    "Boot with lockdown=integrity, which tracing works with.",
		})
	}
	if f.otherPIDs != nil {
		findings = append(findings, Finding{
			Level: Warning, What: "this is not the host's PID namespace", Means: f.otherPIDs.Error() + ".",
			Do: "Run this on the host, or with hostPID: true.",
		})
	}
	if f.memfdNoexec != nil && *f.memfdNoexec >= 2 {
		findings = append(findings, Finding{
			Level: Note, What: "vm.memfd_noexec is 2",
			Means: "Probes are tried on a child of the collector's own from a file in TMPDIR, /tmp unless set, which must not be mounted noexec.",
		})
	}
	if len(findings) == 0 {
		return []Finding{{What: "neither kernel lockdown nor a namespace is in the way"}}
	}
	return findings
}
