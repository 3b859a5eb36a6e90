package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func pollerThrottledCause() Cause {
	return Cause{
		Name:    "poller_throttled",
		Title:   "poller throttled by a CPU quota",
		Happens: "The cgroup of the polling thread, or one above it, had used up its CPU quota: the thread was kept off its CPU until the next period.",
		Needs:   "what the kernel did with the polling thread meanwhile, and cpu.stat of its cgroups",
		For: []string{
			"The polling thread wanted a CPU and had none for most of the excess time.",
			"The quota ran out in the window, and took at least as much time away.",
			"No other thread is known to have run on its CPU instead; or the absences are as long as the throttling.",
		},
		Against: []string{
			"The quota did not run out, or took less time away than the thread was kept from its CPU.",
			"Another thread ran on its CPU instead, and the absences are much shorter than the throttling: see poller_preempted.",
		},
		CannotTell:   "throttling of this thread from that of others in its cgroup: the kernel counts them together.",
		Confirm:      "`grep -e nr_throttled -e throttled_usec /sys/fs/cgroup/CGROUP/cpu.stat` grows; `cat cpu.max` there and above is not \"max\".",
		Remedy:       "Remove the CPU limit of the container (in Kubernetes, leave out resources.limits.cpu), or give it whole CPUs with the static CPU manager.",
		Source:       []string{"https://docs.kernel.org/scheduler/sched-bwc.html", "https://docs.kernel.org/admin-guide/cgroup-v2.html"},
		Proven:       Executed,
		Consequences: []string{"post_stalled", "send_queue_full", "send_queue_backlog"},
		PerProcess:   true,
		OffCPU:       true,
		judge:        judgePollerThrottled,
	}
}

func judgePollerThrottled(b *Burst) Judgement {
	switch {
	case !b.scheduled():
		return b.unscheduled()
	case b.Throttling == nil:
		return lacking(missingThrottling)
	case b.Throttling.Count == 0:
		return Judgement{}
	}
	l := b.threadLateness(runnable)
	o := gradedBy(l)
	if o.Confidence == None {
		return o.Judgement
	}
	o.supports("poller.runnable", "the polling thread wanted a CPU and had none for %s of the excess time", percent(l.Explains()))
	o.supports("cgroup.throttled", "the CPU quota of its cgroup ran out in %s and took %s away", amount(float64(b.Throttling.Count), "period"), short(b.Throttling.Time))
	if b.throttles(l) < half {
		o.opposes(None, "cgroup.throttled", "the quota took only %s away, the thread was late by %s", short(b.Throttling.Time), short(l.Total))
		return o.Judgement
	}
	if b.throttles(l) < most {
		o.limit(Possible)
	}
	if who, known := b.instead(); known && !b.fitsThrottling(l) {
		o.opposes(Possible, "thread.instead", "%s ran on its CPU instead", who)
	} else if known {
		o.limit(Likely)
	}
	o.weighInferred(l)
	return o.Judgement
}

// throttles is the part of what the poller was late by that its CPU quota could
// account for.
func (b *Burst) throttles(l lateness) float64 {
	if b.Throttling == nil || b.Throttling.Count == 0 {
		return 0
	}
	return ratio(b.Throttling.Time, l.Total)
}

// fitsThrottling reports whether the absences look like those of a quota: not more
// of them than periods, and as long as what it took away in each. A quarter is for
// other threads of the cgroup, whose time is in the sum.
func (b *Burst) fitsThrottling(l lateness) bool {
	each := b.Throttling.Time / time.Duration(b.Throttling.Count)
	return uint64(l.Episodes) <= b.Throttling.Count && 4*l.Longest >= each
}

// instead is the thread that ran instead of the poller in its longest time without
// a CPU, for people.
func (b *Burst) instead() (who string, known bool) {
	var longest time.Duration
	for i := range b.Slow {
		c := &b.Slow[i]
		s := &c.PollerScheduling
		if c.HasPollerScheduling && s.Instead.TID != 0 && s.Runnable > longest {
			who, longest, known = nameOfInstead(s), s.Runnable, true
		}
	}
	return who, known
}

func nameOfInstead(s *verbs.Scheduling) string {
	if s.ByCollector {
		return "this collector, " + nameOf(s.Instead) + ","
	}
	return nameOf(s.Instead)
}
