package rdmareceiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// poster is a process of which every second is looked at.
type poster struct {
	watch  idleWatch
	now    time.Duration
	posts  uint64
	queues []verbs.QueueInfo
	// last is when it last posted.
	last time.Duration
	// fired are the silences, by the time at which they were found.
	fired map[time.Duration]diagnose.Idle
	// receives are how many were delivered.
	receives uint64
}

func newPoster() *poster {
	q := queueOf(trainer, 1)
	q.Oldest, q.Outstanding = 0, 0
	return &poster{now: time.Minute, queues: []verbs.QueueInfo{q}, fired: map[time.Duration]diagnose.Idle{}}
}

// seconds lets time pass. In each second it posts until as long as pause before its
// end, or not at all when that is negative.
func (p *poster) seconds(n int, pause time.Duration) {
	for range n {
		p.now += time.Second
		if pause >= 0 {
			p.posts++
			p.last = p.now - pause
		}
		p.look()
	}
}

func (p *poster) look() {
	queues := make([]verbs.QueueInfo, len(p.queues))
	copy(queues, p.queues)
	if len(queues) > 0 {
		queues[0].Posted, queues[0].Activity, queues[0].Received = p.posts, uint64(p.last), p.receives
	}
	for _, idle := range p.watch.look(&verbs.Snapshot{Monotonic: uint64(p.now), Queues: queues}) {
		p.fired[p.now] = idle.idle
	}
}

func TestSilenceAfterSteadyWork(t *testing.T) {
	p := newPoster()
	p.queues = append(p.queues, queueOf(trainer, 2))
	p.queues[1].Oldest, p.queues[1].Outstanding = 0, 3
	p.seconds(15, 10*time.Millisecond)
	require.Empty(t, p.fired)
	p.seconds(1, -1)
	require.Len(t, p.fired, 1, "within two seconds")
	idle := p.fired[p.now]
	assert.Equal(t, 1010*time.Millisecond, idle.For)
	assert.Equal(t, uint64(p.last), idle.Since)
	assert.Equal(t, trainer, idle.Process)
	assert.Greater(t, idle.Active, idleActive)
	assert.EqualValues(t, 3, idle.SendsOutstanding)
	assert.True(t, idle.HasReceives)
	p.seconds(100, -1)
	assert.Len(t, p.fired, 59, "for a minute, and then the work is done")
	p.seconds(5, 0)
	p.seconds(5, -1)
	assert.Len(t, p.fired, 59, "it has to work for a while first")
}

func TestSilencesThatMeanNothing(t *testing.T) {
	for name, run := range map[string]func(*poster){
		"it began not long ago": func(p *poster) {
			p.seconds(8, 0)
			p.seconds(20, -1)
		},
		"it pauses for a second or more all the time": func(p *poster) {
			for range 20 {
				p.seconds(7, 0)
				p.seconds(3, -1)
			}
		},
		"it pauses for nearly a second in every one": func(p *poster) {
			p.seconds(30, 900*time.Millisecond)
			p.seconds(1, -1)
			p.seconds(10, 900*time.Millisecond)
		},
		"it paused for as long a little before": func(p *poster) {
			p.seconds(9, 0)
			p.seconds(2, -1)
			p.seconds(20, 0)
			p.seconds(5, -1)
			p.seconds(20, 0)
		},
		"its end": func(p *poster) {
			p.seconds(20, 0)
			p.queues = nil
			p.seconds(20, -1)
		},
		"it gives queues back": func(p *poster) {
			p.queues = append(p.queues, queueOf(trainer, 2))
			p.seconds(20, 0)
			p.queues = p.queues[:1]
			p.seconds(20, -1)
		},
		"something hangs": func(p *poster) {
			p.seconds(20, 0)
			p.queues[0].Oldest = 2 * time.Second
			p.seconds(20, -1)
		},
		"it is a consumer in the kernel": func(p *poster) {
			p.queues[0].ID.Process.TGID = verbs.KernelTGID | 1
			p.seconds(20, 0)
			p.seconds(20, -1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPoster()
			run(p)
			assert.Empty(t, p.fired)
		})
	}
}

// Which came later, the last post or the last receive, is known when they were not
// seen by the same look.
func TestOrderOfTheLastPostAndReceive(t *testing.T) {
	for name, test := range map[string]struct {
		run            func(*poster)
		ordered, later bool
	}{
		"a receive came last": {func(p *poster) {
			p.receives++
			p.seconds(2, -1)
		}, true, true},
		"a post came last": {func(p *poster) {
			p.receives++
			p.seconds(1, 0)
			p.seconds(1, 0)
			p.seconds(2, -1)
		}, true, false},
		"both within a second": {func(p *poster) {
			p.receives++
			p.seconds(1, 0)
			p.seconds(2, -1)
		}, false, true},
		"nothing was received": {func(p *poster) { p.seconds(2, -1) }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPoster()
			p.seconds(15, 10*time.Millisecond)
			posts := p.posts
			test.run(p)
			require.Contains(t, p.fired, p.now)
			idle := p.fired[p.now]
			assert.Equal(t, test.ordered, idle.Ordered)
			if test.ordered {
				assert.Equal(t, test.later, idle.LastReceive > idle.Since)
			}
			assert.Equal(t, 14+p.posts-posts, idle.Sends)
			assert.Equal(t, p.receives, idle.Receives)
		})
	}
}

// Where posts and receives take turns, the numbers of both say which came later, though
// both were seen by one look.
func TestTurnsTellTheOrder(t *testing.T) {
	for name, test := range map[string]struct {
		// each is how many are received for each post before, and posts and receives
		// are what the last look with posts sees.
		each, posts, receives uint64
		ordered, later        bool
	}{
		"it posted last":   {1, 2, 1, true, false},
		"it received last": {1, 1, 2, true, true},
		"two at once":      {1, 1, 3, false, false},
		"one for one":      {1, 1, 1, false, false},
		"no turns before":  {3, 2, 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPoster()
			for range 15 {
				p.receives += test.each
				p.seconds(1, 10*time.Millisecond)
			}
			p.posts += test.posts - 1
			p.receives += test.receives
			p.seconds(1, 10*time.Millisecond)
			p.seconds(2, -1)
			require.Contains(t, p.fired, p.now)
			idle := p.fired[p.now]
			assert.Equal(t, test.ordered, idle.Ordered)
			if test.ordered {
				assert.Equal(t, test.later, idle.LastReceive > idle.Since)
			}
		})
	}
}

// Looks that come one right after the other are no second without posts.
func TestLooksInARush(t *testing.T) {
	p := newPoster()
	p.seconds(6, 0)
	for range 5 {
		p.now += time.Millisecond
		p.look()
	}
	p.seconds(6, 0)
	p.seconds(2, -1)
	assert.Len(t, p.fired, 1)
}

// A silence becomes one incident when a cause takes it, and none when none does.
func TestSilenceBecomesAnIncident(t *testing.T) {
	for _, taken := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := withCauses(t, func(r *rig) {
				r.platform.causes = []diagnose.Cause{
					diagnose.Cause{Name: "application_late", Title: "the application is late", PerProcess: true}.JudgedBy(func(b *diagnose.Burst) diagnose.Judgement {
						if b.Idle == nil || !taken {
							return diagnose.Judgement{}
						}
						return diagnose.Judgement{Confidence: diagnose.Certain}
					}),
				}
			})
			post := func(n uint64) {
				q := queueOf(trainer, 1)
				now, _ := r.platform.readClocks()
				q.Oldest, q.Posted, q.Activity = 0, n, uint64(now.monotonic)
				r.engine.look(verbs.Snapshot{Monotonic: uint64(now.monotonic), Queues: []verbs.QueueInfo{q}})
			}
			r.start()
			for n := range uint64(150) {
				time.Sleep(100 * time.Millisecond)
				post(n)
			}
			// The queue stays as it was, and time goes on.
			last, _ := r.platform.readClocks()
			for range 50 {
				time.Sleep(100 * time.Millisecond)
				q := queueOf(trainer, 1)
				now, _ := r.platform.readClocks()
				q.Oldest, q.Posted, q.Activity = 0, 149, uint64(last.monotonic)
				r.engine.look(verbs.Snapshot{Monotonic: uint64(now.monotonic), Queues: []verbs.QueueInfo{q}})
			}
			r.shutdown()
			records := recordsOf(r.logs, eventVerdict)
			if !taken {
				assert.Empty(t, records)
				return
			}
			require.NotEmpty(t, records)
			raw := attributesOf(records[0])
			assert.Equal(t, "likely", raw[attributeConfidence], "no more than that")
			assert.Contains(t, raw, attributeIncidentSilence)
			assert.Contains(t, records[0].Body().Str(), "python3 on mlx5_0 (rank 9): nothing posted for ")
			assert.Equal(t, "closed", attributesOf(records[len(records)-1])[attributeIncidentState])
		})
	}
}
