package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func sendQueueBacklogCause() Cause {
	return Cause{
		Name:    "send_queue_backlog",
		Title:   "Send Queue backlog",
		Happens: "Requests wait behind earlier work of the same queue pair, or behind the unsignaled requests that complete with them. They inherit the cause of what is at the head.",
		Needs:   "the stages of each request, how many requests completed with it (rdma.wr.count), and the other queue pairs to the same peer",
		For: []string{
			"Most of the time passed behind earlier work of the same queue pair, whose head moved on.",
			"Long runs of unsignaled requests complete with each slow one, longer ones than before, and for each of them it took no longer than the threshold.",
			"Other queue pairs to the same peer are not slow.",
		},
		Against: []string{
			"Runs as long as these used to be fast.",
			"A request was slow by itself, at the head of the queue: its cause is that of all that waited for it, and their time is not counted.",
			"The other queue pairs to the same peer are slow as well.",
		},
		CannotTell: "a process that posts much at once from a path whose rate is limited or whose delay has grown: in both, a deep queue moves on in small steps. Without long unsignaled runs it is never more than possible.",
		Confirm:    "Compare `rdma.sq.outstanding` and `rdma.wr.count` of slow and fast requests; with a smaller depth, or more of them signaled, the time of each falls while the throughput stays.",
		Remedy:     "Post less at once or over more queue pairs, and signal more often; the time of one request is the depth times what each takes.",
		Source:     []string{"https://github.com/NVIDIA/nccl/issues/1378", "https://github.com/apache/brpc/pull/3145", "https://man7.org/linux/man-pages/man3/ibv_post_send.3.html"},
		Proven:     Executed,
		PerProcess: true,
		judge:      judgeSendQueueBacklog,
	}
}

// longRun is how many requests complete with one for it to be a long run.
const longRun = 16

func judgeSendQueueBacklog(b *Burst) Judgement {
	if runs := b.runLateness(); runs.grade() >= Likely {
		return judgeUnsignaledRun(b, runs)
	}
	l := b.backlogLateness()
	o := gradedBy(l)
	if o.Confidence == None {
		return o.Judgement
	}
	o.limit(Possible)
	o.supports("stage.queue", "%s of the excess time passed behind earlier work of the queue pair, which moved on", percent(l.Explains()))
	o.weighHead(b)
	o.weighPath(b)
	return o.Judgement
}

func judgeUnsignaledRun(b *Burst, runs lateness) Judgement {
	o := gradedBy(runs)
	o.limit(Likely)
	shortest, slowest := b.runs()
	o.supports("wr.count", "runs of %d or more requests complete with one of them, and each request takes at most %s", shortest, short(slowest))
	o.weighPath(b)
	o.Remedy = "Signal more often: a request that ends a run of unsignaled ones takes as long as the run."
	return o.Judgement
}

// runLateness measures the requests whose time is made up of many small ones that
// complete with them, and whose poller was there.
func (b *Burst) runLateness() lateness {
	return b.measure(func(c *verbs.Completion) time.Duration {
		absent := c.HasPollerScheduling && c.PollerScheduling.Runnable+c.PollerScheduling.Stopped > c.Excess()/2
		if !b.endsRun(c) || absent {
			return 0
		}
		return c.Excess() - c.Stages[verbs.StagePoll] - c.Stages[verbs.StagePost]
	})
}

// endsRun reports whether a long run completes with a request, each of it fast, and
// that says why it took so long: as long a run that used to be fast does not.
func (b *Burst) endsRun(c *verbs.Completion) bool {
	if c.Requests < longRun || perRequest(c) > c.Threshold {
		return false
	}
	usual := b.Baseline
	return usual == nil || usual.Requests == 0 || c.Duration() <= 2*usual.Median || float64(c.Requests) > 1.5*usual.Requests
}

func perRequest(c *verbs.Completion) time.Duration {
	return c.Excess() / time.Duration(max(c.Requests, 1))
}

// runs is how many requests complete with one at the least, and how long one of them
// takes at the most, of the long runs.
func (b *Burst) runs() (shortest uint32, slowest time.Duration) {
	for i := range b.Slow {
		c := &b.Slow[i]
		if !b.endsRun(c) {
			continue
		}
		if shortest == 0 || c.Requests < shortest {
			shortest = c.Requests
		}
		slowest = max(slowest, perRequest(c))
	}
	return shortest, slowest
}
