package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func hangCause() Cause {
	return Cause{
		Name:    "hang",
		Title:   "request that does not complete",
		Happens: "A send has been outstanding for more than a second and nothing completes it.",
		Needs:   "the age of what is outstanding, what the polling thread does, and the transport counters of the device",
		For: []string{
			"A send is outstanding for far longer than any work of the port explains.",
			"The polling thread runs, or waits for events: the likeliest side is the device, the network or the peer.",
			"The polling thread does not run: the likeliest side is this host.",
		},
		Against: []string{
			"The device sends again, or waits for the peer's receives: then that is the cause.",
			"The port or the queue pair has failed.",
		},
		CannotTell:   "whether the device has completed it: a completion in the Completion Queue that nobody takes looks the same as none.",
		Confirm:      "`rdma resource show qp` for the state of the queue pair at both ends, `gdb -p PID -batch -ex 'thread apply all bt'` for who polls, and the same at the peer.",
		Remedy:       "Look at both ends of the queue pair: the state of the queue pairs, whether each process polls, and whether the path between is up.",
		Source:       []string{"https://github.com/NVIDIA/nccl/issues/1730", "https://github.com/NVIDIA/nccl/issues/1557"},
		Proven:       Executed,
		Consequences: []string{"send_queue_full", "send_queue_backlog"},
		PerProcess:   true,
		judge:        judgeHang,
	}
}

func judgeHang(b *Burst) Judgement {
	if len(b.Stuck) == 0 {
		return Judgement{}
	}
	oldest := b.oldestStuck()
	o := &opinion{Judgement{Confidence: Likely}}
	o.supports("stuck.age", "%s outstanding for up to %s", amount(float64(len(b.Stuck)), "send"), short(oldest.Age))
	o.weighSide(b, oldest)
	o.weighPort(b)
	o.weighTransport(b)
	return o.Judgement
}

// weighSide says on which side it is likeliest.
func (o *opinion) weighSide(b *Burst, oldest *verbs.Stuck) {
	poller := b.Poller
	if poller == nil {
		o.misses(Possible, missingState)
		return
	}
	if off := poller.kept(oldest.Age); off >= half {
		o.opposes(Possible, "side.local", "the polling thread was kept off its CPU for %s of that: the likeliest side is this host", percent(off))
		o.Remedy = "Look at the polling thread of this process first: it does not run."
		return
	}
	switch poller.State {
	case 'R':
		o.supports("side.remote", "the polling thread runs: the likeliest side is the device, the network or the peer")
	case 'S':
		o.weighSleep(poller)
	case 'D', 'T', 't':
		o.opposes(Possible, "side.local", "the polling thread is in state %c: the likeliest side is this host", poller.State)
		o.Remedy = "Look at the polling thread of this process first: it does not run."
	default:
		o.misses(Possible, missingState)
	}
}

func (o *opinion) weighSleep(poller *Poller) {
	if poller.Wait == WaitUnknown {
		o.misses(Possible, missingSleep)
		return
	}
	o.supports("side.remote", "the polling thread wakes for events or by time: the likeliest side is the device, the network or the peer")
}

// kept is the part of that time for which the thread was kept from running.
func (p *Poller) kept(age time.Duration) float64 {
	if !p.HasScheduling {
		return 0
	}
	return ratio(p.Scheduling.Runnable+p.Scheduling.Stopped, age)
}

// weighPort notes what the device told of itself, its port or the queue pair.
func (o *opinion) weighPort(b *Burst) {
	told := map[verbs.AsyncEventType]bool{}
	for i := range b.Events {
		// A port that flaps tells of it again and again.
		if kind := b.Events[i].Type; !told[kind] {
			told[kind] = true
			o.opposes(Possible, "async_event", "the device told of %s", kind)
		}
	}
	if b.Device != nil && b.Device.Port != nil && !b.Device.Port.Active() {
		o.opposes(Possible, "port.state", "the port is not active")
	}
}

// weighTransport looks for signs that the device still tries.
func (o *opinion) weighTransport(b *Burst) {
	n, read := b.Counters.GrewAny(fabric.SourceHardware,
		"local_ack_timeout_err", "packet_seq_err", "rnr_nak_retry_err", "roce_adp_retrans",
		"completer_retry_err", "rcvd_rnr_err", "retry_exceeded_err", "rcvd_seq_err")
	switch {
	case !read:
		o.misses(Possible, "the transport counters of the device")
	case n > 0:
		o.opposes(Possible, "transport.retries", "the device sent again or waited for a receive %.0f times", n)
	}
}
