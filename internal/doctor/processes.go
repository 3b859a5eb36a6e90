package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

func (s *System) checkProcesses(context.Context) []Finding {
	found, err := s.processes()
	if err != nil {
		return []Finding{unreadable(err)}
	}
	return judgeProcesses(found, s.sight())
}

// judgeProcesses tells of the blind spots among the processes that have an RDMA device
// open.
func judgeProcesses(found processes, own sight) []Finding {
	seen := ""
	if found.hidden > 0 {
		seen = fmt.Sprintf(" (%s not looked into)", plural(found.hidden, "process", "processes"))
	}
	findings := []Finding{{What: plural(len(found.rdma), "process has", "processes have") + " an RDMA device open" + seen}}
	for i := range found.rdma {
		p := &found.rdma[i]
		for _, judge := range []func(*rdmaProcess) *Finding{bits32, accelerated, gpuInitiated, ownPath, linkedIn, lockedMemory} {
			if f := judge(p); f != nil {
				f.What = p.who() + " " + f.What
				findings = append(findings, *f)
			}
		}
	}
	// What it lacks is told where the capabilities are.
	if found.hidden > 0 && !own.lacks("CAP_SYS_PTRACE") {
		findings = append(findings, Finding{
			Level: Unknown, What: plural(found.hidden, "process", "processes") + " could not be looked into though this process has CAP_SYS_PTRACE",
			Means: deniedByOthers,
		})
	}
	return findings
}

// who names a process.
func (p *rdmaProcess) who() string { return fmt.Sprintf("%s (pid %d)", orUnknown(p.name), p.pid) }

// has is a mapped file whose name begins with one of these, "" when there is none.
func (p *rdmaProcess) has(prefixes ...string) string {
	for _, path := range p.files {
		name := filepath.Base(path)
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return name
		}
	}
	return ""
}

func (p *rdmaProcess) onDevice(prefix string) bool {
	return slices.ContainsFunc(p.devices, func(name string) bool { return strings.HasPrefix(name, prefix) })
}

func bits32(p *rdmaProcess) *Finding {
	if !p.bits32 {
		return nil
	}
	return &Finding{Level: Note, What: "is a 32-bit program", Means: "32-bit processes are not traced."}
}

// accelerated is for UCX, whose transports for mlx5 build requests and read completions
// themselves (src/uct/ib/mlx5 of openucx/ucx). The module has them all, and which was
// chosen is not to be seen from outside.
func accelerated(p *rdmaProcess) *Finding {
	module := p.has("libuct_ib_mlx5.so")
	if module == "" && p.onDevice("mlx5") {
		module = p.has("libuct_ib.so")
	}
	if module == "" {
		return nil
	}
	return &Finding{
		Level: Note, What: "uses UCX (" + module + ") on mlx5",
		Means: "By its own choice UCX takes rc_mlx5, dc_mlx5 or ud_mlx5 there, which are not seen.",
		Do:    "UCX_TLS=rc_v,ud_v,self,sm makes the job visible, where its speed permits that.",
	}
}

// gpuInitiated is for libraries with which the GPU posts and polls: NVSHMEM's IBGDA, DOCA
// GPUNetIO, and DeepEP, which is built on the first.
func gpuInitiated(p *rdmaProcess) *Finding {
	library := p.has("nvshmem_transport_ibgda", "libdoca_gpunetio", "deep_ep_cpp", "deep_ep")
	if library == "" {
		return nil
	}
	return &Finding{
		Level: Note, What: "has " + library + " loaded",
		Means: "With it the GPU posts and polls, which is not seen; what the CPU posts is. rdma.port.unattributed has the bytes that no traced request explains.",
	}
}

// ownPath is for libfabric on EFA, which since 2.3 has a data path of its own there.
func ownPath(p *rdmaProcess) *Finding {
	library := p.has("libfabric.so")
	if library == "" || p.has("libefa") == "" {
		return nil
	}
	return &Finding{Level: Note, What: "uses " + library + " on EFA", Means: "Since libfabric 2.3 its provider efa builds requests and reads completions itself by default, which is not seen."}
}

func linkedIn(p *rdmaProcess) *Finding {
	if p.has("libibverbs") != "" || len(p.files) == 0 || p.bits32 {
		return nil
	}
	return &Finding{
		Level: Note, What: "has no libibverbs loaded", Means: "rdma-core may be linked into it: then it is found from its first queue pair on, in some seconds, and queues that it connected before are timed once they align.",
	}
}

// littleMemory is less than what jobs register.
const littleMemory = 1 << 30

func lockedMemory(p *rdmaProcess) *Finding {
	if p.locksAll || p.lockLimit < 0 || p.lockLimit >= littleMemory {
		return nil
	}
	return &Finding{
		Level: Warning, What: fmt.Sprintf("may lock %d KiB of memory (RLIMIT_MEMLOCK)", p.lockLimit>>10),
		Means: "It cannot register more: ibv_reg_mr fails with ENOMEM.",
		Do:    "LimitMEMLOCK=infinity in its unit, or memlock unlimited in /etc/security/limits.d; for Slurm also PropagateResourceLimitsExcept=MEMLOCK.",
	}
}
