package provider

import "debug/elf"

// Function is what a probed instruction is the start of.
type Function uint8

// The functions of interest. The first four are the data path of a provider,
// the others are exported by libibverbs.
const (
	PostSend Function = iota
	PostRecv
	PostSRQRecv
	PollCQ
	SetOps
	CreateQP
	ModifyQP
	DestroyQP
	DestroySRQ
	CmdCreateQP
	numFunctions
)

var functionNames = [numFunctions]string{
	"post_send", "post_recv", "post_srq_recv", "poll_cq",
	"verbs_set_ops", "ibv_create_qp", "ibv_modify_qp", "ibv_destroy_qp", "ibv_destroy_srq", "ibv_cmd_create_qp",
}

// String returns the name of the function, for a provider that of the member
// of ibv_context.ops.
func (f Function) String() string {
	if f < numFunctions {
		return functionNames[f]
	}
	return "unknown"
}

// Kind says what a file is.
type Kind uint8

// The kinds of files.
const (
	// Other is a file that has no part in verbs.
	Other Kind = iota
	// Verbs is libibverbs: it defines verbs_set_ops.
	Verbs
	// Provider is a driver library: it imports verbs_set_ops.
	Provider
)

// String returns "other", "verbs" or "provider".
func (k Kind) String() string {
	switch k {
	case Verbs:
		return "verbs"
	case Provider:
		return "provider"
	default:
		return "other"
	}
}

// Target is one function and where probes on it may stand. All offsets are
// file offsets, as perf_event_open and uprobe links take them.
type Target struct {
	Function Function
	// Symbol is the name of the function, "" where the file is stripped.
	Symbol string `json:"-"`
	// Offset is the first byte of the function.
	Offset uint64
	// EntryOffset is where a probe on entry costs least: an instruction that
	// the kernel emulates instead of single-stepping, at which the first
	// three arguments are still in their registers and the function has
	// been entered exactly once. Where there is none, it is ReturnOffset.
	EntryOffset uint64
	// ReturnOffset is where a return probe may stand: the stack pointer still
	// points at the return address. It is past an endbr64, which the kernel
	// would single-step.
	ReturnOffset uint64
}

// Library is what the analysis of one file found. It is shared and must not
// be changed.
type Library struct {
	Kind Kind
	// Linked says that libibverbs and the provider are linked into the file, see
	// Finder.Linked.
	Linked bool `json:"-"`
	// Name is "libibverbs", or the name a provider registers its driver
	// under ("mlx5", "rxe"), else its DT_SONAME, else "unknown".
	Name string
	// Machine is elf.EM_X86_64 or elf.EM_AARCH64.
	Machine elf.Machine
	// ABI is the version of the private interface between libibverbs and
	// its providers, such as "IBVERBS_PRIVATE_34"; "" when the file has none.
	ABI string
	// Digest is the SHA-256 of the bytes of the executable segments.
	Digest [32]byte `json:"-"`
	// Targets are ordered by function, then by offset.
	Targets []Target
	// Sites holds, for each function of the data path of a provider that is
	// among the targets, the instructions at which its results can be seen.
	Sites []SiteSet
	// Unresolved counts calls of verbs_set_ops of which not every table
	// could be told; functions of this library may be missing in Targets.
	Unresolved int
	// Notes say in sentences what was left out and why.
	Notes []string
}

// Find returns the targets of one function, nil if there are none.
func (l *Library) Find(f Function) []Target {
	var found []Target
	for _, t := range l.Targets {
		if t.Function == f {
			found = append(found, t)
		}
	}
	return found
}

// Slots says at which index of the table that a provider hands to
// verbs_set_ops (struct verbs_context_ops) the functions of interest are. The
// structure is private to rdma-core and grows with most releases.
type Slots struct {
	// Count is the number of members of the table.
	Count int
	// PollCQ and the others are indices into the table.
	PollCQ, PostRecv, PostSend, PostSRQRecv int
}

// wanted lists the slots that are targets.
func (s Slots) wanted() [4]slotFunction {
	return [4]slotFunction{
		{s.PostSend, PostSend},
		{s.PostRecv, PostRecv},
		{s.PostSRQRecv, PostSRQRecv},
		{s.PollCQ, PollCQ},
	}
}

type slotFunction struct {
	slot     int
	function Function
}
