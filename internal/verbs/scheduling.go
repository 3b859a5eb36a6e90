package verbs

import "time"

// Scheduling is what the kernel did with a thread while a work request was under
// way: between its post and the delivery of its completion.
type Scheduling struct {
	// Runnable is how long it wanted a CPU and had none, Asleep how long it waited
	// for something that it asked for, Stopped how long a signal or a debugger held
	// it.
	Runnable, Asleep, Stopped time.Duration
	// Interrupted is how long interrupts took the CPU from it.
	Interrupted time.Duration
	// Longest is the longest single absence.
	Longest time.Duration
	// Switches counts the times it left its CPU, Migrations those it came back on
	// another.
	Switches, Migrations uint32
	// Instead is the thread that took its CPU for the longest time that it was
	// runnable; its TID is 0 when that is not known.
	Instead Thread
	// Whole is true when every absence of the interval is known; else the times are
	// lower bounds.
	Whole bool
}
