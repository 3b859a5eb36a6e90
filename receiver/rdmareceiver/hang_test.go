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

// A hang is one incident for as long as it lasts, of which the sends count once.
func TestHangIsOneIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withCauses(t, func(r *rig) {
			r.platform.causes = []diagnose.Cause{
				diagnose.Cause{Name: "hang", Title: "a hang"}.JudgedBy(func(b *diagnose.Burst) diagnose.Judgement {
					if len(b.Stuck) == 0 || b.Queue == nil {
						return diagnose.Judgement{}
					}
					return diagnose.Judgement{Confidence: diagnose.Certain}
				}),
			}
		})
		q := queueOf(trainer, 0x1234)
		q.ID, q.Oldest = theStuck().Queue, 1250*time.Millisecond
		r.start()
		time.Sleep(1300 * time.Millisecond)
		r.engine.look(verbs.Snapshot{Monotonic: 6_300_000_000, Queues: []verbs.QueueInfo{q}})
		u := theStuck()
		r.engine.stuck <- u
		for range 30 {
			time.Sleep(time.Second)
			q.Oldest += time.Second
			r.engine.look(verbs.Snapshot{Monotonic: 6_300_000_000 + uint64(q.Oldest), Queues: []verbs.QueueInfo{q}})
		}
		states := map[string]int{}
		for _, record := range recordsOf(r.logs, eventVerdict) {
			raw := attributesOf(record)
			states[raw[attributeIncidentState].(string)]++
			assert.EqualValues(t, 1, raw[attributeIncidentStuck])
			assert.EqualValues(t, 0, raw[attributeIncidentSlow])
		}
		assert.Equal(t, map[string]int{"open": 1, "update": 2}, states)
		require.Len(t, recordsOf(r.logs, eventVerdict), 3)
		last := recordsOf(r.logs, eventVerdict)[2]
		assert.Contains(t, last.Body().Str(), "1 send not completed, the oldest for 2", "some 20 s")

		q.Oldest = 0
		r.engine.look(verbs.Snapshot{Monotonic: 50_000_000_000, Queues: []verbs.QueueInfo{q}})
		time.Sleep(13 * time.Second)
		records := recordsOf(r.logs, eventVerdict)
		assert.Equal(t, "closed", attributesOf(records[len(records)-1])[attributeIncidentState])
		r.shutdown()
	})
}

// A look at the queues that fails tells nothing: what hung before is not over.
func TestHangOutlastsAFailedGlance(t *testing.T) {
	h, g := hangs{}, &glances{}
	u := theStuck()
	q := queueOf(trainer, u.Queue.QPNumber)
	q.ID, q.Oldest = u.Queue, u.Age
	look := func() { g.add(&verbs.Snapshot{Queues: []verbs.QueueInfo{q}}) }
	held := newHolder()
	c := slowIn(verbs.StagePoll, trainer, 1)
	c.Queue = u.Queue
	held.hold(&c)
	held.holdStuck(&u)
	bursts, _ := held.take()
	look()
	require.Equal(t, bursts, h.follow(bursts, g, u.Posted+uint64(u.Age)))

	g.skip()
	assert.Empty(t, h.follow(nil, g, u.Posted+uint64(u.Age+time.Second)), "it is not known whether it hangs")
	assert.True(t, h.any())
	q.Oldest += 2 * time.Second
	look()
	still := h.follow(nil, g, u.Posted+uint64(q.Oldest))
	require.Len(t, still, 1)
	assert.Equal(t, q.Oldest, still[0].oldest)
	assert.Equal(t, q.Oldest, still[0].stuck[0].Age)
	assert.Zero(t, still[0].stuckCount, "it was counted before")
	assert.Empty(t, still[0].slow, "those are of the window in which they were delivered")

	q.Oldest = 0
	look()
	assert.Empty(t, h.follow(nil, g, u.Posted+uint64(u.Age+3*time.Second)))
	assert.False(t, h.any())
}

func TestAccounts(t *testing.T) {
	a := &accounting{}
	c := slowIn(verbs.StagePoll, trainer, 1)
	h := newHolder()
	h.hold(&c)
	h.hold(&c)
	u := theStuck()
	u.Queue.QPNumber = 2
	h.holdStuck(&u)
	bursts, _ := h.take()
	var all []judged
	for _, b := range bursts {
		all = append(all, judged{held: b, verdict: diagnose.Verdict{Cause: "late_poller"}})
	}
	a.add(10, 20, all)
	want := account{
		Start: 10, End: 20, Queue: c.Queue, Device: "mlx5_0", Slow: 2, Lost: 2 * c.Excess(), Cause: "late_poller",
		Stages: [verbs.NumStages]time.Duration{verbs.StagePoll: 2 * c.Duration()},
	}
	assert.Equal(t, []account{want}, a.Table(), "a hang has lost no time yet")
	for i := range uint64(maxAccounts + 5) {
		a.add(i, i+1, all)
	}
	table := a.Table()
	require.Len(t, table, maxAccounts)
	for i := range table {
		assert.EqualValues(t, 5+i, table[i].Start)
	}
}
