package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Burst is what was slow on one queue pair in one window, or the silence of one
// process on one device, and its surroundings. A pointer is nil, and a value with a
// Has beside it means nothing, where it is not known. Everything in it was sampled
// over the window or at its end.
type Burst struct {
	// Start and End are the window on CLOCK_MONOTONIC, in nanoseconds. Every
	// request of Slow was under way within it.
	Start, End uint64
	// Slow are completions of one queue pair that took too long or failed, in the
	// order of delivery.
	Slow []verbs.Completion
	// Stuck are sends of the queue pair that are still outstanding.
	Stuck []verbs.Stuck
	// Idle is set, and Slow and Stuck are empty, when the process stopped to use
	// the device.
	Idle *Idle

	// Stamped is true when StagePoll of Slow may be from the device's time stamps of
	// its CQ entries: then it is exact, and a thread that slept in it may have slept
	// until the device told it. Else it is an upper bound.
	Stamped bool

	// Queue is the queue pair at the end of the window.
	Queue *verbs.QueueInfo
	// Neighbours are the other queue pairs on the device in the window.
	Neighbours Neighbours
	// Baseline is what is normal for the requests of Slow.
	Baseline *Baseline
	// Completions counts what the queue pair completed in the window, slow or not;
	// it means something when HasCompletions.
	Completions    uint64
	HasCompletions bool
	// Rejected counts the posts that the provider refused because the Send Queue
	// was full (ENOMEM), of the process on the device in the window. Refused counts
	// those of which the reason was not seen.
	Rejected, Refused uint64
	// Receives is what the Receive Queues of the process on the device did.
	Receives Receives
	// Registrations is what the process registered on the device in the window.
	Registrations Registrations
	// Throttling is what the CPU quota of the poller's cgroup, or of one above it,
	// took away in the window.
	Throttling *Throttling
	// Poller is the thread that last took a completion of the queue pair.
	Poller *Poller
	// Stolen is for how long a hypervisor took the poller's CPU away in the window:
	// "steal" of /proc/stat, which counts hundredths of a second.
	Stolen *time.Duration
	// CPUIdle is the deepest idle state that the poller's CPU was in.
	CPUIdle *CPUIdle
	// Device is where it happened.
	Device *Device
	// Counters are of the device and the port.
	Counters *Counters
	// Events are what the device told in the window and in the seconds before it.
	Events []verbs.AsyncEvent
}

// Idle is a process that used a device in every one of the last seconds, and then
// did not.
type Idle struct {
	Process verbs.ProcessID
	// Active is for how long it had posted in every second before.
	Active time.Duration
	// Since is when it last posted a send, and For how long ago that was.
	Since uint64
	For   time.Duration
	// LastDelivery is when the last completion of a send was delivered, LastReceive
	// that of a receive; 0 when there was none. On CLOCK_MONOTONIC, in nanoseconds.
	LastDelivery, LastReceive uint64
	// SendsOutstanding and ReceivesOutstanding are of all its queue pairs on the
	// device; the latter means something when HasReceives.
	SendsOutstanding, ReceivesOutstanding uint64
	HasReceives                           bool
	// Ordered is true when it is known which came later, the last post or the last
	// receive: LastReceive is after Since if that did. Both may be off by a second,
	// or by the time until the last post was completed.
	Ordered bool
	// Sends and Receives are how many it posted and how many were delivered to it
	// in the seconds of Active; 0 and 0 when that is not known.
	Sends, Receives uint64
}

// Poller is a thread that takes completions, at the end of the window.
type Poller struct {
	Thread verbs.Thread
	// State is its state in /proc/PID/task/TID/stat: 'R' runs or wants to, 'S'
	// sleeps, 'D' is held up in the kernel, 'T' and 't' are stopped by a signal and
	// by a debugger. 0 when it is not known.
	State byte
	// Wait is what it sleeps for between polls.
	Wait Wait
	// Scheduling is since the post of the oldest of Stuck, or over the window when
	// nothing is stuck, with the absence that lasts. It means something when
	// HasScheduling.
	Scheduling    verbs.Scheduling
	HasScheduling bool
}

// Wait is what a thread sleeps for.
type Wait uint8

// The waits.
const (
	// WaitUnknown: it was not seen asleep, or not in what.
	WaitUnknown Wait = iota
	// WaitEvent ends when something happens, such as the event of a completion:
	// /proc/PID/task/TID/wchan is ib_uverbs_event_read, ep_poll or the like.
	WaitEvent
	// WaitTimer ends when a time of its own choice is over: hrtimer_nanosleep.
	WaitTimer
)

// CPUIdle is an idle state of a CPU, from /sys/devices/system/cpu/cpuN/cpuidle.
type CPUIdle struct {
	// State is its name, such as "C6". Latency is how long the CPU needs to leave
	// it, Entered how often it was in it in the window.
	State   string
	Latency time.Duration
	Entered uint64
}

// Neighbours is what the other queue pairs on the device did in the window.
type Neighbours struct {
	// Active counts those that completed something, Slow those of them of which
	// something was slow.
	Active, Slow int
	// ActiveOfPeer and SlowOfPeer are those that lead to the same peer address.
	ActiveOfPeer, SlowOfPeer int
	// ActiveOfCQ and SlowOfCQ are those that share the Completion Queue.
	ActiveOfCQ, SlowOfCQ int
	// ActiveOfThread and SlowOfThread are those whose completions the same thread
	// takes from another Completion Queue.
	ActiveOfThread, SlowOfThread int
	// ThreadsKnown is true when it is known of all active queue pairs of the process
	// which thread takes their completions, so that ActiveOfThread is all of them.
	ThreadsKnown bool
	// QueuePairs counts all on the device, whoever they are of.
	QueuePairs int
}

// Baseline is what is normal for a device, peer, operation and class of sizes.
type Baseline struct {
	// Median and P99 are of durations. Samples is how many they were learned from.
	Median, P99 time.Duration
	Samples     uint64
	// Requests is how many completed with each of them, unsignaled ones included, on
	// average; 0 when that is not known.
	Requests float64
}

// Receives is what happened to Receive Queues in the window.
type Receives struct {
	// Empty counts how often one ran empty.
	Empty uint64
}

// Registrations is what was registered and deregistered in the window.
type Registrations struct {
	Count, Bytes uint64
	// Time is what they took, deregistrations included.
	Time time.Duration
}

// Throttling is what a CPU quota took away.
type Throttling struct {
	// Count is in how many periods, Time for how long, summed over threads.
	Count uint64
	Time  time.Duration
}

// Excess is the time that the burst lost: what the requests took beyond what is
// normal for them, or beyond what the port's work explains.
func (b *Burst) Excess() time.Duration {
	var sum time.Duration
	for i := range b.Slow {
		sum += b.Slow[i].Excess()
	}
	return sum
}

// Share is the part of the burst's time, from 0 to 1, that its requests spent in
// these stages.
func (b *Burst) Share(stages ...verbs.Stage) float64 {
	var of, all time.Duration
	for i := range b.Slow {
		all += b.Slow[i].Duration()
		for _, stage := range stages {
			of += b.Slow[i].Stages[stage]
		}
	}
	return ratio(of, all)
}

// Knows reports whether that stage was told apart for all requests of the burst,
// of which there must be one.
func (b *Burst) Knows(stage verbs.Stage) bool {
	for i := range b.Slow {
		if !b.Slow[i].Known.Has(stage) {
			return false
		}
	}
	return len(b.Slow) > 0
}

func ratio(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return min(max(float64(part)/float64(whole), 0), 1)
}
