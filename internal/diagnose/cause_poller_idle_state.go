package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func pollerIdleStateCause() Cause {
	return Cause{
		Name:    "poller_idle_state",
		Title:   "CPU in a deep idle state",
		Happens: "The thread that takes the completions slept until an interrupt, its CPU went into a deep idle state (C-state), and took long to leave it.",
		Needs:   "the idle states that the CPU of the polling thread was in and how long it takes to leave them, and time stamps of the device",
		For: []string{
			"The CPU was in a state that takes about as long to leave as the requests were late.",
			"The polling thread slept meanwhile.",
			"By the device's time stamps the completions were there.",
		},
		Against: []string{
			"The thread did not sleep: then its CPU was never idle.",
			"The requests were later by far, or by less, than leaving the state takes.",
		},
		CannotTell:   "it from other things that make an interrupt as late, by time stamps; without these, from a completion that was late.",
		Confirm:      "Hold /dev/cpu_dma_latency open with 0 written to it, or `cpupower idle-set -D 1`: the requests are fast at once. `turbostat` shows the states.",
		Remedy:       "Forbid deep idle states on the CPUs that wait for completions: /dev/cpu_dma_latency, the tuned profile network-latency, or pm_qos_resume_latency_us of these CPUs.",
		Source:       []string{"https://docs.kernel.org/admin-guide/pm/cpuidle.html", "https://docs.kernel.org/power/pm_qos_interface.html"},
		Proven:       Recorded,
		Consequences: []string{"interrupt_late"},
		PerProcess:   true,
		judge:        judgePollerIdleState,
	}
}

func judgePollerIdleState(b *Burst) Judgement {
	state := b.CPUIdle
	switch {
	case !b.scheduled():
		return b.unscheduled()
	case b.measure(sleeping).Explains() < aPart:
		return Judgement{}
	case state == nil:
		return lacking("which idle states the CPU of the polling thread was in")
	case state.Entered == 0 || state.Latency <= 0 || b.wait() == WaitTimer:
		return Judgement{}
	}
	l := b.measure(state.explains)
	o := gradedBy(l)
	if o.Confidence == None {
		return o.Judgement
	}
	o.limit(Likely)
	o.supports("cpu.idle_state", "the CPU was in state %s, which takes %s to leave, %d times", state.State, short(state.Latency), state.Entered)
	o.supports("poller.asleep", "the polling thread slept for %s of a request, which was late by %s", short(b.measure(sleeping).Mean()), short(b.Excess()/time.Duration(len(b.Slow))))
	if state.Entered < uint64(l.Episodes) {
		o.opposes(Possible, "cpu.idle_state", "that is less often than the %d times that it was late", l.Episodes)
	}
	if !b.Stamped || !b.looked() {
		o.Explains = 0
		o.misses(Possible, "when the device wrote the completions: cqe_timestamps tells")
	}
	if b.wait() == WaitUnknown {
		o.misses(Possible, missingSleep)
	}
	return o.Judgement
}

// explains is the excess of a request whose poller slept and that was late by about
// as much as leaving the state takes: from half of it, up to twice.
func (s *CPUIdle) explains(c *verbs.Completion) time.Duration {
	late := c.Excess()
	if c.Known.Has(verbs.StagePoll) {
		late = c.Stages[verbs.StagePoll]
	}
	if sleeping(c) < s.Latency/2 || late < s.Latency/2 || late > 2*s.Latency {
		return 0
	}
	return late
}
