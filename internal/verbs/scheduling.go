package verbs

import "time"

// InterruptionLimit is how long an interrupt or softirq has to last to be in
// Scheduling.Interrupted, INTERRUPTION_NS of bpf/interruption.h.
const InterruptionLimit = 20 * time.Microsecond

// Scheduling is what the kernel did with a thread while a work request was under
// way: between its post and the delivery of its completion.
type Scheduling struct {
	// Runnable is how long it wanted a CPU and had none, Asleep how long it waited
	// for something it asked for, Stopped how long a signal, a debugger or the
	// freezer of suspend held it.
	Runnable, Asleep, Stopped time.Duration
	// Interrupted is how long interrupts and softirqs took the CPU from it, those of
	// at least InterruptionLimit. They are watched while something is slow, and the
	// last seven are known.
	Interrupted time.Duration
	// InterruptsKnown is true when all of these are in Interrupted; else that is a
	// lower bound, and 0 says nothing.
	InterruptsKnown bool
	// Longest is the longest single absence, or the part of it that is between
	// post and delivery.
	Longest time.Duration
	// Switches counts the times it left its CPU, one in which it was away at the
	// post included, Migrations those it came back on another.
	Switches, Migrations uint32
	// Instead is the thread that had its CPU for the longest time that it was
	// runnable, all turns together; after a sleep that ended on another CPU than it
	// began on, the one that it followed there. TID 0 is unknown; with the name of the
	// kernel's idle thread, swapper/CPU, nobody took it, as under a cgroup's quota. Its
	// CPU is not known.
	Instead Thread
	// ByCollector is true when Instead is a thread of this collector.
	ByCollector bool
	// Whole is true when every absence of the interval is known; else the times
	// are lower bounds. The last fifteen are known, of a thread that has posted
	// or polled before the interval.
	Whole bool
}

// OffCPU is how long the thread was away from its CPU.
func (s *Scheduling) OffCPU() time.Duration { return s.Runnable + s.Asleep + s.Stopped }
