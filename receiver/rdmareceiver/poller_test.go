package rdmareceiver

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// listedThreads knows the threads in the map and no others, all of the trainer.
type listedThreads map[int]process.ThreadState

func (l listedThreads) ThreadState(pid, tid int) (process.ThreadState, error) {
	if state, ok := l[tid]; ok && pid == int(trainer.TGID) {
		return state, nil
	}
	return process.ThreadState{}, process.ErrGone
}

// sceneWith is a window of the trainer, two of whose queues thread 11 polls.
func sceneWith(queues ...verbs.QueueInfo) *scene {
	g := &glances{}
	g.add(&verbs.Snapshot{Queues: queues})
	return &scene{
		start: 1000, end: 2000, glances: g, quotas: &quotas{}, steals: &steals{}, idleStates: &idleStates{},
		threads: listedThreads{
			11:   {Name: "proxy", State: 'T'},
			4251: {Name: "poller", State: 'S', Wait: "ep_poll"},
		},
		scheduling: func(tid uint32, since uint64) (verbs.Scheduling, bool) {
			if tid != 11 {
				return verbs.Scheduling{}, false
			}
			return verbs.Scheduling{Stopped: time.Duration(since)}, true
		},
	}
}

// polled is a queue whose Completion Queue a thread polls.
func polled(qpn uint32, cq uint64, thread uint32) verbs.QueueInfo {
	q := neighbour(qpn, cq, 1, 1, 0)
	q.Poller = thread
	return q
}

func TestPollerOfABurst(t *testing.T) {
	queue := polled(1, 0x1, 11)
	s := sceneWith(queue)
	c := fullCompletion()
	c.Queue = queue.ID
	slow := s.burstOf(&held{queue: queue.ID, device: "mlx5_0", slow: []verbs.Completion{c}, first: c.Posted})
	assert.Equal(t, &diagnose.Poller{
		Thread: verbs.Thread{TID: 4251, CPU: 40, Name: "nccl-poll"}, State: 'S', Wait: diagnose.WaitEvent,
	}, slow.Poller, "who took it")

	u := theStuck()
	u.Queue, u.Posted = queue.ID, 700
	stuck := s.burstOf(&held{queue: queue.ID, device: "mlx5_0", stuck: []verbs.Stuck{u}, first: 700})
	assert.Equal(t, &diagnose.Poller{
		Thread: verbs.Thread{TID: 11, Name: "proxy"}, State: 'T',
		Scheduling: verbs.Scheduling{Stopped: 700}, HasScheduling: true,
	}, stuck.Poller, "who polls, since the post")

	c.Poller.TID = 99
	gone := s.burstOf(&held{queue: queue.ID, device: "mlx5_0", slow: []verbs.Completion{c}, first: c.Posted})
	assert.Nil(t, gone.Poller)
	s.threads = nil
	assert.Nil(t, s.pollerOf(trainer, verbs.Thread{TID: 11}, 0))
}

func TestPollerOfASilence(t *testing.T) {
	silent := &idleProcess{key: counterKey{trainer, "mlx5_0"}, idle: diagnose.Idle{Process: trainer, Since: 800}}
	for name, test := range map[string]struct {
		queues []verbs.QueueInfo
		want   uint32
	}{
		"one thread for all":    {[]verbs.QueueInfo{polled(1, 0x1, 11), polled(2, 0x2, 11)}, 11},
		"as far as is known":    {[]verbs.QueueInfo{polled(1, 0x1, 11), polled(2, 0x2, 0)}, 11},
		"two threads":           {[]verbs.QueueInfo{polled(1, 0x1, 11), polled(2, 0x2, 4251)}, 0},
		"nobody knows":          {[]verbs.QueueInfo{polled(1, 0x1, 0)}, 0},
		"nothing of the device": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			burst := sceneWith(test.queues...).silenceOf(silent)
			if test.want == 0 {
				assert.Nil(t, burst.Poller)
				return
			}
			require.NotNil(t, burst.Poller)
			assert.Equal(t, test.want, burst.Poller.Thread.TID)
			assert.EqualValues(t, 800, burst.Poller.Scheduling.Stopped)
		})
	}
}

// The thread of a process that has no other is the one that polls.
func TestPollerOfAProcessWithOneThread(t *testing.T) {
	s := sceneWith(polled(1, 0x1, 0))
	for _, alone := range []bool{true, false} {
		s.threads = listedThreads{int(trainer.TGID): {Name: "python3", State: 'T', Alone: alone}}
		poller := s.pollerOf(trainer, verbs.Thread{}, 800)
		if !alone {
			assert.Nil(t, poller)
			continue
		}
		require.NotNil(t, poller)
		assert.Equal(t, verbs.Thread{TID: trainer.TGID, Name: "python3"}, poller.Thread)
		assert.EqualValues(t, 'T', poller.State)
	}
}

func TestWaits(t *testing.T) {
	for function, want := range map[string]diagnose.Wait{
		"hrtimer_nanosleep": diagnose.WaitTimer, "do_nanosleep": diagnose.WaitTimer,
		"ep_poll": diagnose.WaitEvent, "poll_schedule_timeout.constprop.0": diagnose.WaitEvent,
		"ib_uverbs_event_read": diagnose.WaitEvent, "": diagnose.WaitUnknown, "futex_do_wait": diagnose.WaitUnknown,
	} {
		assert.Equal(t, want, waitOf(function), function)
	}
}

func TestWhatAQueueCompleted(t *testing.T) {
	g := &glances{}
	_, ok := g.completed(queueOf(trainer, 1).ID)
	assert.False(t, ok)
	g.add(&verbs.Snapshot{Queues: []verbs.QueueInfo{neighbour(1, 0x1, 1, 1<<32-2, 0)}})
	_, ok = g.completed(queueOf(trainer, 1).ID)
	assert.False(t, ok, "since when")
	again := neighbour(3, 0x1, 1, 7, 0)
	again.Traffic.Generation = 2
	g.add(&verbs.Snapshot{Queues: []verbs.QueueInfo{neighbour(1, 0x1, 1, 3, 0), neighbour(2, 0x1, 1, 4, 0), neighbour(3, 0x1, 1, 9, 0)}})
	for qpn, want := range map[uint32]uint64{1: 5, 2: 4} {
		n, ok := g.completed(queueOf(trainer, qpn).ID)
		assert.True(t, ok)
		assert.Equal(t, want, n, "counts wrap, and a new queue begins with none")
	}
	g.add(&verbs.Snapshot{Queues: []verbs.QueueInfo{again}})
	n, _ := g.completed(again.ID)
	assert.EqualValues(t, 7, n, "another queue with the same number")
	g.skip()
	_, ok = g.completed(again.ID)
	assert.False(t, ok)
}

// The thread of each active queue has to be known to know all of one thread.
func TestThreadsThatAreNotKnown(t *testing.T) {
	for _, thread := range []uint32{0, 12} {
		g := &glances{}
		g.add(&verbs.Snapshot{})
		g.add(&verbs.Snapshot{Queues: []verbs.QueueInfo{polled(1, 0x1, 11), polled(2, 0x2, thread)}})
		assert.Equal(t, thread != 0, g.neighbours(queueOf(trainer, 1).ID).ThreadsKnown)
	}
}

// What the host tells reaches the causes.
func TestBurstsHaveWhatTheHostTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bursts []diagnose.Burst
		states := []fabric.IdleState{{Name: "C6", Latency: time.Microsecond}}
		r := withCauses(t, func(r *rig) {
			r.platform.openHost = func(string, *slog.Logger) (host, error) {
				h := theHost()
				h.throttling = func(int) (process.Throttling, error) { return process.Throttling{}, nil }
				h.threads = listedThreads{4251: {State: 'S', Wait: "hrtimer_nanosleep"}}
				h.stolen = func() (map[uint32]time.Duration, error) { return map[uint32]time.Duration{40: 0}, nil }
				h.idleStates = func(uint32) ([]fabric.IdleState, error) { return states, nil }
				return h, nil
			}
		}, watching(&bursts))
		queue := queueOf(trainer, 0x1234)
		r.engine.look(verbs.Snapshot{Monotonic: 5_000_000_000, Queues: []verbs.QueueInfo{queue}})
		r.start()
		for range 3 {
			r.engine.completions <- fullCompletion()
			time.Sleep(time.Second)
		}
		r.shutdown()
		require.GreaterOrEqual(t, len(bursts), 2)
		last := bursts[len(bursts)-1]
		assert.Equal(t, &diagnose.Throttling{}, last.Throttling)
		require.NotNil(t, last.Poller)
		assert.Equal(t, diagnose.WaitTimer, last.Poller.Wait)
		assert.Equal(t, new(time.Duration), last.Stolen)
		assert.Equal(t, &diagnose.CPUIdle{State: "C6", Latency: time.Microsecond}, last.CPUIdle)
	})
}
