package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// mostParanoid is the highest kernel.perf_event_paranoid with which CAP_PERFMON
// suffices. Debian and Ubuntu know higher ones.
const mostParanoid = 2

// capabilityFacts are what a process may.
type capabilityFacts struct {
	held map[string]bool
	// own is what this process may look into.
	own sight
	// collector is the number of the collector's process, 0 where it is this process that
	// was looked at.
	collector int
	release   string
	// paranoid is kernel.perf_event_paranoid, nil when it is not known.
	paranoid *int
}

func (s *System) checkCapabilities(context.Context) []Finding {
	f := capabilityFacts{own: s.sight(), release: s.release(), paranoid: s.number("proc/sys/kernel/perf_event_paranoid")}
	process := "self"
	if s.asked() != nil && s.collector.PID() > 0 {
		f.collector = s.collector.PID()
		process = strconv.Itoa(f.collector)
	}
	var err error
	if f.held, err = tracer.HeldCapabilities(filepath.Join(s.root, "proc", process, "status")); err != nil {
		return []Finding{unreadable(err)}
	}
	return judgeCapabilities(f)
}

func judgeCapabilities(f capabilityFacts) []Finding {
	var findings []Finding
	for _, c := range tracer.Capabilities() {
		findings = append(findings, f.judge(c))
	}
	switch {
	case f.collector > 0:
		return append(findings, f.ownSight()...)
	case worst(findings) == Unknown:
		// What a person may says nothing of a service.
		findings = append([]Finding{{
			Level: Unknown, What: "these are the capabilities of this process, not those of a collector",
			Do: f.own.remedy() + ", or beside the collector that is to trace.",
		}}, findings...)
	}
	return findings
}

// moreToTell is what this report gains by looking into processes of others.
const moreToTell = "With it this report also tells of the libraries and the devices of processes that are closed to it."

// ownSight says what this process lacks, where the capabilities are those of a collector.
func (f *capabilityFacts) ownSight() []Finding {
	missing := f.own.missing()
	if len(missing) == 0 {
		return nil
	}
	return []Finding{{
		Level: Unknown, What: "this process, other than the collector, has no " + strings.Join(missing, " and no "),
		Means: moreToTell, Do: f.own.remedy() + ".",
	}}
}

// judge tells of one capability whether it is there, what it buys, and what is missed
// without it.
func (f *capabilityFacts) judge(c tracer.Capability) Finding {
	if f.held[c.Name] {
		return Finding{What: fmt.Sprintf("%s %s, for %s", f.who(), c.Name, plainText(c.For))}
	}
	finding := Finding{Level: f.levelWithout(c.Name), What: fmt.Sprintf("%s no %s: it is for %s", f.who(), c.Name, plainText(c.For))}
	switch {
	case finding.Level == OK:
		finding.Means = "CAP_SYS_ADMIN, which it has, stands for it."
	case finding.Level == Unknown && c.Name == "CAP_SYS_PTRACE":
		finding.Means = moreToTell
	case finding.Level != Unknown:
		finding.Means, finding.Do = "Without it: "+plainText(c.Without)+".", f.remedy(c.Name)
	}
	return finding
}

// who is the subject of what is found.
func (f *capabilityFacts) who() string {
	if f.collector > 0 {
		return fmt.Sprintf("the collector (pid %d) has", f.collector)
	}
	return "this process has"
}

// levelWithout is how bad it is that a capability is missing.
func (f *capabilityFacts) levelWithout(name string) Level {
	admin := f.held["CAP_SYS_ADMIN"]
	switch name {
	case "CAP_BPF", "CAP_PERFMON", "CAP_CHECKPOINT_RESTORE":
		if admin {
			return OK
		}
	}
	if f.collector == 0 {
		return Unknown
	}
	switch {
	case name == "CAP_BPF" || name == "CAP_PERFMON":
		return Problem
	case name == "CAP_CHECKPOINT_RESTORE":
		return Note
	case name != "CAP_SYS_ADMIN":
		return Warning
	case tracer.OlderKernel(f.release, 6, 6):
		return Problem
	case f.paranoid != nil && *f.paranoid > mostParanoid:
		return Warning
	default:
		return Note
	}
}

// remedy says what to do about a capability that is missing.
func (f *capabilityFacts) remedy(name string) string {
	grant := fmt.Sprintf("Grant it: %s in CapabilityBoundingSet= and AmbientCapabilities= of the service (systemctl edit otelcol-rdma).", name)
	if name == "CAP_SYS_ADMIN" && f.paranoid != nil && *f.paranoid > mostParanoid && !tracer.OlderKernel(f.release, 6, 6) {
		return fmt.Sprintf("Set kernel.perf_event_paranoid=%d, which is %d, in a file in /etc/sysctl.d. Or grant it: %s in CapabilityBoundingSet= and "+
			"AmbientCapabilities= of the service (systemctl edit otelcol-rdma).", mostParanoid, *f.paranoid, name)
	}
	return grant
}

// plainText is without the marks of Markdown.
func plainText(markdown string) string { return strings.ReplaceAll(markdown, "`", "") }
