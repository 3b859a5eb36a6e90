package tracer

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Capability is one that tracing uses. Its texts are in Markdown; docs/configuration.md
// has them as well.
type Capability struct {
	// Name is such as "CAP_BPF".
	Name string
	// bit is that of CapEff in /proc/self/status (include/uapi/linux/capability.h).
	bit uint
	// For says what it is used for, Without what is missed without it.
	For, Without string
}

// Capabilities are all of them, the most important first.
func Capabilities() []Capability {
	return []Capability{
		{"CAP_BPF", 39, "loading programs and maps", "nothing is traced"},
		{
			"CAP_PERFMON", 38,
			"placing probes in user space, and, where `kernel.perf_event_paranoid` is 2 or less, in the kernel: " +
				"kernel addresses (`CAP_SYSLOG`) are not needed",
			"nothing is traced",
		},
		{
			"CAP_SYS_PTRACE", 19,
			"reading `/proc/<pid>/{maps,root,environ}` of other users' processes, and, in the memory of every process that has " +
				"a queue pair, the structures `ibv_qp` and `ibv_context`",
			"verbs libraries that only processes of other users have loaded, as in containers, and programs with libibverbs linked in " +
				"are not found and not traced; " +
				"of processes of other users no service name, rank or job is known",
		},
		{
			"CAP_DAC_READ_SEARCH", 2,
			"opening libraries in directories that only their owner may enter",
			"verbs libraries in directories that only their owner may enter are not traced",
		},
		{
			"CAP_CHECKPOINT_RESTORE", 40,
			"opening `/proc/<pid>/map_files`: a verbs library that was deleted or replaced while a process uses it, as by an upgrade of " +
				"rdma-core below a running job",
			"such a library is not traced",
		},
		{
			"CAP_SYS_ADMIN", 21,
			"all probes on kernels before 6.6, on others those in the kernel where `kernel.perf_event_paranoid` is more than 2, as on Debian " +
				"and Ubuntu, and fentry in place of kprobes on consumers in the kernel; also PCI configuration space beyond its first 64 bytes",
			"before 6.6 nothing is traced; where `kernel.perf_event_paranoid` is more than 2, queues have no CQ numbers and addresses, and " +
				"neither asynchronous events nor consumers in the kernel are seen; relaxed ordering, the largest read request and access control " +
				"services of devices are absent",
		},
	}
}

// capabilityNamed is the zero value for one that is not used.
func capabilityNamed(name string) Capability {
	for _, c := range Capabilities() {
		if c.Name == name {
			return c
		}
	}
	return Capability{}
}

func missingFor(held map[string]bool, names ...string) []string {
	var missing []string
	for _, name := range names {
		if !held[name] {
			missing = append(missing, name)
		}
	}
	return missing
}

// HeldCapabilities returns which of [Capabilities] a process has, by its status file of
// /proc: those in effect.
func HeldCapabilities(path string) (map[string]bool, error) {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("reading the capabilities of a process: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		value, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the capabilities of a process from %s: %w", path, err)
		}
		held := map[string]bool{}
		for _, c := range Capabilities() {
			held[c.Name] = bits&(1<<c.bit) != 0
		}
		return held, nil
	}
	return nil, fmt.Errorf("reading the capabilities of a process: no CapEff line in %s", path)
}
