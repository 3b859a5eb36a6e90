package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func pollerStoppedCause() Cause {
	return Cause{
		Name:    "poller_stopped",
		Title:   "poller stopped",
		Happens: "A signal (SIGSTOP, SIGTSTP) or a debugger held the thread that takes the completions; they waited for it.",
		Needs:   "what the kernel did with the polling thread meanwhile",
		For: []string{
			"The polling thread was stopped for most of the excess time.",
			"Nothing else made the requests slow: but for the stop they would have been within the threshold.",
			"It has been stopped since the post of what is stuck, or since the last post.",
		},
		Against: []string{
			"The thread was not stopped, or was stopped only after the request was late, as by a debugger that looks at a process that hangs.",
		},
		CannotTell:   "who stopped it: a signal may come from any process of the same user or of root.",
		Confirm:      "`grep -e State -e TracerPid /proc/PID/task/TID/status`: T is stopped, t is held by the tracer of that number; `strace -e trace=none -e signal=all -p PID` shows signals.",
		Remedy:       "Find out who stops the process: job control, a checkpoint, a debugger or a profiler that uses ptrace.",
		Source:       []string{"https://man7.org/linux/man-pages/man7/signal.7.html", "https://man7.org/linux/man-pages/man2/ptrace.2.html"},
		Proven:       Executed,
		Consequences: []string{"hang", "application_late", "peer_late", "send_queue_full", "send_queue_backlog", "post_stalled"},
		PerProcess:   true,
		OffCPU:       true,
		judge:        judgePollerStopped,
	}
}

func judgePollerStopped(b *Burst) Judgement {
	switch {
	case len(b.Stuck) > 0:
		if since := judgeStoppedSince(b, b.oldestStuck().Age); since.Confidence > None || len(b.Slow) == 0 {
			return since
		}
	case b.Idle != nil:
		return judgeStoppedSince(b, b.Idle.For)
	}
	return judgeStoppedWhileSlow(b)
}

func judgeStoppedWhileSlow(b *Burst) Judgement {
	if !b.scheduled() {
		return b.unscheduled()
	}
	l := b.threadLateness(stopped)
	o := gradedBy(l)
	if o.Confidence == None {
		return o.Judgement
	}
	o.supports("poller.stopped", "the polling thread was stopped for %s of the excess time, up to %s at once", percent(l.Explains()), short(l.Longest))
	o.weighInferred(l)
	return o.Judgement
}

// atOnce is within what time a stop has to follow the last sign of life, to be its
// reason and not somebody's answer to it.
const atOnce = 100 * time.Millisecond

// judgeStoppedSince judges a silence that lasts, of that length.
func judgeStoppedSince(b *Burst, silence time.Duration) Judgement {
	poller := b.Poller
	if poller == nil {
		return lacking(missingState)
	}
	if !poller.HasScheduling {
		o := &opinion{}
		if poller.held() {
			o.Confidence = Possible
			o.supports("poller.state", "the polling thread is stopped")
		}
		o.misses(Possible, "since when the polling thread is stopped")
		return o.Judgement
	}
	took := min(poller.Scheduling.Stopped, silence)
	o := &opinion{Judgement{Explains: ratio(took, silence)}}
	if o.Explains < half {
		return o.Judgement
	}
	o.Confidence = Likely
	o.supports("poller.stopped", "the polling thread was stopped for %s of the last %s", short(took), short(silence))
	if silence-took > atOnce {
		o.opposes(Possible, "poller.stopped", "that was %s after the last sign of life, and may be an answer to it", short(silence-took))
	}
	return o.Judgement
}

// held reports whether the thread is stopped, by a signal or a debugger.
func (p *Poller) held() bool { return p.State == 'T' || p.State == 't' }

// oldestStuck is the send that has been outstanding for longest.
func (b *Burst) oldestStuck() *verbs.Stuck {
	oldest := &b.Stuck[0]
	for i := range b.Stuck {
		if b.Stuck[i].Age > oldest.Age {
			oldest = &b.Stuck[i]
		}
	}
	return oldest
}
