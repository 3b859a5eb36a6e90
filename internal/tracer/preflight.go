package tracer

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// linkKind is how uprobes are attached.
type linkKind string

const (
	// linkMulti: one link for many places, Linux 6.6; CAP_BPF and CAP_PERFMON
	// suffice.
	linkMulti linkKind = "multi"
	// linkPerfEvent: a perf event for each place; needs CAP_SYS_ADMIN.
	linkPerfEvent linkKind = "perf_event"
)

// MinimumKernel is the first release with bpf_get_attach_cookie, which tells the
// libraries apart.
const MinimumKernel = "5.15"

// preflight says how to attach, or what is missing, before anything is loaded.
func preflight() (linkKind, error) {
	release := kernelRelease()
	if OlderKernel(release, 5, 15) {
		return "", &KernelError{Need: "the BPF features of Linux " + MinimumKernel, Release: release}
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return "", &KernelError{Need: "its own type information (CONFIG_DEBUG_INFO_BTF)", Release: release, Err: err}
	}
	held, err := HeldCapabilities("/proc/self/status")
	if err != nil {
		return "", err
	}
	if missing := missingFor(held, "CAP_BPF", "CAP_PERFMON"); missing != nil && !held["CAP_SYS_ADMIN"] {
		return "", &CapabilityError{Missing: missing, Op: "loading and attaching BPF programs"}
	}
	err = features.HaveBPFLinkUprobeMulti()
	switch {
	case err == nil:
		return linkMulti, nil
	case !errors.Is(err, ebpf.ErrNotSupported):
		return "", fmt.Errorf("asking the kernel for uprobe multi links: %w", err)
	case !held["CAP_SYS_ADMIN"]:
		return "", &CapabilityError{
			Missing: []string{"CAP_SYS_ADMIN"},
			Op:      "attaching uprobes on Linux " + release + " (from 6.6 on CAP_BPF and CAP_PERFMON suffice)",
		}
	}
	return linkPerfEvent, nil
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}

// OlderKernel reports whether a release such as "6.1.0-40-amd64" is before
// major.minor; a release that cannot be read is not.
func OlderKernel(release string, major, minor int) bool {
	var x, y int
	if n, err := fmt.Sscanf(release, "%d.%d", &x, &y); n != 2 || err != nil {
		return false
	}
	return x < major || x == major && y < minor
}
