package diagnose

import (
	"fmt"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/text"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// nameLimit is how long the kernel lets the name of a thread be, in bytes.
const nameLimit = 15

// nameOf is a thread for people. Its owner chose the name.
func nameOf(t verbs.Thread) string {
	if name := text.Clean(t.Name, nameLimit); name != "" {
		return fmt.Sprintf("%s (thread %d)", name, t.TID)
	}
	return fmt.Sprintf("thread %d", t.TID)
}

// weighInferred notes that it was not seen when the poller last looked in vain.
func (o *opinion) weighInferred(l lateness) {
	if l.Inferred {
		o.misses(Likely, missingLook)
	}
}

// weighSteal notes whether a hypervisor can have taken the time: a thread whose
// CPU is not there does not know.
func (o *opinion) weighSteal(b *Burst, l lateness) {
	switch {
	case b.Stolen == nil:
		o.misses(Possible, missingSteal)
	case ratio(*b.Stolen, l.Total) >= aPart:
		o.opposes(Possible, "cpu.stolen", "a hypervisor took the CPU away for %s", short(*b.Stolen))
	}
}

// weighRegistrations notes whether the thread may have registered memory meanwhile.
func (o *opinion) weighRegistrations(b *Burst, l lateness) {
	if ratio(b.Registrations.Time, l.Total) >= aPart {
		o.opposes(Possible, "registrations.time", "registrations took %s, which may have been this thread's", short(b.Registrations.Time))
	}
}

// software reports whether the device is a program of the kernel, such as
// soft-RoCE: then its work is done in interrupts and threads of this host's CPUs.
func (b *Burst) software() bool { return b.Device != nil && b.Device.PCIAddress == "" }

// wait is what the poller sleeps for, as far as it was seen.
func (b *Burst) wait() Wait {
	if b.Poller == nil {
		return WaitUnknown
	}
	return b.Poller.Wait
}

// slept reports of a request whose poller slept that the sleep was no waiting for
// the completion. Where only completion sites are probed, a sleep is evidence of a
// late poller only when it was for a time of the thread's own choice or the thread
// was held up in the kernel (bpf/sched.h); returns of posts are not known there.
// Where they are, the poll stage begins with the last poll in vain, whatever the
// thread slept for.
func (b *Burst) slept(c *verbs.Completion) bool {
	return !b.Stamped && c.Known.Has(verbs.StageSubmit) && c.Known.Has(verbs.StagePoll)
}

// sleptByChoice reports whether that holds for most of the time that was slept.
func (b *Burst) sleptByChoice() bool {
	var sure, all time.Duration
	for i := range b.Slow {
		took := min(b.Slow[i].PollerScheduling.Asleep, b.Slow[i].Stages[verbs.StagePoll])
		all += took
		if b.slept(&b.Slow[i]) {
			sure += took
		}
	}
	return ratio(sure, all) >= most
}
