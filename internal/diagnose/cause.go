package diagnose

// Cause is one reason why work requests are slow. docs/causes.md is made of these.
type Cause struct {
	// Name is the value of rdma.slow.cause: lower case with underscores.
	Name string
	// Title is what people call it, such as "receiver not ready (RNR)".
	Title string
	// Happens says in a sentence or two what goes on.
	Happens string
	// Needs is what has to be known to call it.
	Needs string
	// For and Against are the evidence it looks at, one sentence each.
	For, Against []string
	// CannotTell is what it cannot be told apart from, or in which case.
	CannotTell string
	// Confirm says how a person confirms it by hand: a command and what to see.
	Confirm string
	// Remedy is one sentence on what to do.
	Remedy string
	// Source is where it is described: public addresses.
	Source []string
	// Proven says how it was proven: see the constants.
	Proven Proof
	// Consequences are the names of causes that this one brings about: their
	// evidence is no doubt about it.
	Consequences []string
	// PerProcess is true of what happens in one process, such as a poller that is
	// late: each process then has incidents of its own. What happens to a device
	// is one incident for all that use it.
	PerProcess bool
	// OffCPU is true where the cause is that the polling thread was off its CPU.
	OffCPU bool

	// judge says of a burst whether it is this. It must not keep the burst.
	judge func(*Burst) Judgement
}

// JudgedBy is the cause with another judge, which says of a burst whether it is
// this and must not keep it. It is for tests of what is done with verdicts.
func (c Cause) JudgedBy(judge func(*Burst) Judgement) Cause {
	c.judge = judge
	return c
}

// Proof is how a cause was proven.
type Proof string

// The proofs.
const (
	// Executed: tests bring it about and see it named.
	Executed Proof = "by execution"
	// Recorded: tests feed recorded or written counters; no hardware brought it
	// about.
	Recorded Proof = "by recorded data only"
)

// Causes returns all causes, the more specific first.
func Causes() []Cause {
	return append(hostCauses(), networkCauses()...)
}
