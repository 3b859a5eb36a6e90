package tracer

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// skips counts runs of programs in the kernel that the kernel skipped: those of
// fentry and fexit that would interrupt themselves on a CPU, and of kprobes those
// that would interrupt any program of a kprobe or an operation on a BPF map.
type skips struct {
	// entries are those at the entry of a verb, returns those at the return of a
	// post or a poll.
	entries, returns uint64
	// calls are those of entries for which nothing at the return can make up: of
	// kprobes, whose returns do not have the arguments.
	calls uint64
	// others are all on which no queue depends: at returns of receives, which tell
	// of refused ones, and in the RDMA core.
	others uint64
}

func (s skips) plus(other skips) skips {
	return skips{
		entries: s.entries + other.entries, returns: s.returns + other.returns,
		calls: s.calls + other.calls, others: s.others + other.others,
	}
}

// noLess is the larger of each: programs and links that are gone are counted when
// they go, and a sum of what is left is smaller for a moment.
func (s skips) noLess(before skips) skips {
	return skips{
		entries: max(s.entries, before.entries), returns: max(s.returns, before.returns),
		calls: max(s.calls, before.calls), others: max(s.others, before.others),
	}
}

// add counts skipped runs of a program. The second program on a return is not
// counted: it is there for the runs of the first that were skipped.
func (s *skips) add(program string, n uint64) {
	switch program {
	case bpf.KverbsProgTracePostSend, bpf.KverbsProgTracePollCq,
		bpf.KverbsProgTracePostRecv, bpf.KverbsProgTracePostSrqRecv,
		bpf.KverbsProgProbePostRecv, bpf.KverbsProgProbePostSrqRecv:
		s.entries += n
	case bpf.KverbsProgProbePostSend, bpf.KverbsProgProbePollCq:
		s.entries += n
		s.calls += n
	case bpf.KverbsProgTracePostSendExit, bpf.KverbsProgTracePollCqExit,
		bpf.KverbsProgProbePostSendExit, bpf.KverbsProgProbePollCqExit:
		s.returns += n
	case bpf.KverbsProgTracePostSendAgain, bpf.KverbsProgTracePollCqAgain:
	default:
		s.others += n
	}
}

// addPrograms counts what the kernel skipped of programs that were reached: those
// of kprobes before Linux 6.7 it does not tell.
func (s *skips) addPrograms(programs map[string]*ebpf.Program) {
	for name, program := range programs {
		if stats, err := program.Stats(); err == nil {
			s.add(name, stats.RecursionMisses)
		}
	}
}

// linkMisses is how often a kprobe was not reached, because its CPU was in another
// one, or because more calls were under way than it has room for. The kernel tells
// from Linux 6.7 on.
func linkMisses(l link.Link) uint64 {
	info, err := l.Info()
	if err != nil {
		return 0
	}
	if event := info.PerfEvent(); event != nil && event.Kprobe() != nil {
		return event.Kprobe().Missed
	}
	return 0
}
