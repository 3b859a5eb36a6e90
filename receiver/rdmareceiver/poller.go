package rdmareceiver

import (
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// threads tells what threads do. It is nil where the host cannot.
type threads interface {
	// ThreadState returns what a thread does now.
	ThreadState(pid, tid int) (process.ThreadState, error)
}

// addPoller adds the thread that took the completions of a burst last, or polls for
// them.
func (s *scene) addPoller(burst *diagnose.Burst, b *held) {
	thread, slept := verbs.Thread{}, false
	for i := range b.slow {
		if c := &b.slow[i]; c.Poller.TID != 0 {
			thread = c.Poller
			slept = slept || c.PollerScheduling.Asleep > 0
		}
	}
	if slept {
		burst.CPUIdle = s.idleStates.deepest(thread.CPU, s.end)
	}
	if thread.TID != 0 {
		burst.Stolen = s.steals.took(thread.CPU, burst.Start)
	} else if q := burst.Queue; q != nil {
		thread.TID = s.glances.pollers[cqKey{b.queue.Process, q.SendCQ}]
	}
	since := burst.Start
	for i := range burst.Stuck {
		since = min(since, burst.Stuck[i].Posted)
	}
	burst.Poller = s.pollerOf(b.queue.Process, thread, since)
}

// pollerOf is what a thread does now and did since a moment, nil when that is not
// known. Where it is not known which thread polls, it is that of a process that has no
// other.
func (s *scene) pollerOf(id verbs.ProcessID, thread verbs.Thread, since uint64) *diagnose.Poller {
	if id.InKernel() || s.threads == nil {
		return nil
	}
	guessed := thread.TID == 0
	if guessed {
		thread.TID = id.TGID
	}
	state, err := s.threads.ThreadState(int(id.TGID), int(thread.TID))
	if err != nil || guessed && !state.Alone {
		return nil
	}
	if thread.Name == "" {
		thread.Name = state.Name
	}
	p := &diagnose.Poller{Thread: thread, State: state.State, Wait: waitOf(state.Wait)}
	p.Scheduling, p.HasScheduling = s.scheduling(thread.TID, since)
	return p
}

// waitOf is what a thread sleeps for, by the function of the kernel that it sleeps
// in. Compilers add to the names of functions.
func waitOf(function string) diagnose.Wait {
	name, _, _ := strings.Cut(function, ".")
	switch name {
	case "hrtimer_nanosleep", "do_nanosleep", "common_nsleep":
		return diagnose.WaitTimer
	case "ib_uverbs_event_read", "ep_poll", "do_epoll_wait", "poll_schedule_timeout", "do_poll", "do_select":
		return diagnose.WaitEvent
	default:
		return diagnose.WaitUnknown
	}
}
