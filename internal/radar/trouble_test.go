package radar

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// burst is one of a queue, from a second after noon to the next.
func burst(number uint32, second int, cause string, lost time.Duration) Burst {
	return Burst{
		Queue: verbs.QueueID{Process: trainer, Context: 0x10, QPNumber: number}, Device: "mlx5_0",
		First: at(second), Last: at(second + 1), Slow: 2, Lost: lost, Worst: lost / 2, Cause: cause, Title: "The cause " + cause,
		Stages: [verbs.NumStages]time.Duration{verbs.StageDevice: lost, verbs.StagePoll: 10},
	}
}

func TestTroubleGoesOnUntilItIsWellForAMinute(t *testing.T) {
	all := newTroubles()
	first, second := burst(1, 0, "a", 100), burst(1, 30, "b", 400)
	all.add(&first)
	all.add(&second)
	got := all.view(at(40).UnixMilli())[first.Queue]
	assert.Equal(t, Trouble{Since: at(0).UnixMilli(), Last: at(31).UnixMilli(), Slow: 4, Lost: 500, Worst: 200, Cause: "b"}, got)

	later := burst(1, 200, "c", 10)
	all.add(&later)
	assert.Equal(t, Trouble{Since: at(200).UnixMilli(), Last: at(201).UnixMilli(), Slow: 2, Lost: 10, Worst: 5, Cause: "c"},
		all.view(at(201).UnixMilli())[first.Queue])
}

func TestTroubleIsForgotten(t *testing.T) {
	all := newTroubles()
	b := burst(1, 0, "a", 1)
	all.add(&b)
	end := at(1).Add(troubleKept)
	assert.Len(t, all.view(end.UnixMilli()), 1)
	assert.Empty(t, all.view(end.Add(time.Second).UnixMilli()))
}

func TestTroublesAreBounded(t *testing.T) {
	all := newTroubles()
	for i := range maxTroubles + 5 {
		b := burst(uint32(i), 0, "a", 1)
		all.add(&b)
	}
	assert.Len(t, all.of, maxTroubles)
	// Those that are long over make room.
	b := burst(maxTroubles+9, int((troubleKept + time.Minute).Seconds()), "a", 1)
	all.add(&b)
	assert.Len(t, all.of, 1)
}

func TestLostTimeIsAddedUpByCauseAndDevice(t *testing.T) {
	var l ledger
	for _, b := range []Burst{burst(1, 0, "a", 100), burst(2, 70, "a", 100), burst(1, 80, "b", 500)} {
		l.add(&b)
	}
	got := l.view(at(90).UnixMilli())
	require.Len(t, got, 2)
	assert.Equal(t, Lost{Cause: "b", Title: "The cause b", Device: "mlx5_0", Slow: 2, Time: 500, Stages: []Stage{{"device", 500}, {"poll", 10}}}, got[0])
	assert.Equal(t, Lost{Cause: "a", Title: "The cause a", Device: "mlx5_0", Slow: 4, Time: 200, Stages: []Stage{{"device", 200}, {"poll", 20}}}, got[1])

	later := at(90).Add(ledgerPages * ledgerPage)
	assert.Empty(t, l.view(later.UnixMilli()))
	b := burst(3, int(later.Sub(noon).Seconds()), "c", 1)
	l.add(&b)
	assert.Len(t, l.view(later.UnixMilli()), 1, "an old page is not added to")
}

// What is stuck has not lost time yet.
func TestStuckSendsAreTroubleAndNotLostTime(t *testing.T) {
	s := opened()
	stuck := burst(1, 0, "hang", 0)
	stuck.Slow, stuck.Stuck = 0, 3
	q := queue(trainer, 1, nil)
	q.Oldest = 2 * time.Second
	s.Look(at(0), snapshot(q), nil)
	s.Judge([]Burst{stuck})
	view := s.View(at(1), 0)
	assert.EqualValues(t, 3, view.Queues.Troubles[0].Stuck)
	q.Oldest = 0
	s.Look(at(1), snapshot(q), nil)
	assert.Zero(t, s.View(at(1), 0).Queues.Troubles[0].Stuck, "what has completed is stuck no more")
	assert.Empty(t, view.Lost)
}

// A page goes through the stages without asking whether there are any.
func TestLostTimeWithoutStagesHasAList(t *testing.T) {
	var l ledger
	b := burst(1, 0, "a", 100)
	b.Stages = [verbs.NumStages]time.Duration{}
	l.add(&b)
	assert.Equal(t, []Stage{}, l.view(at(1).UnixMilli())[0].Stages)
}

func TestIncidentsAreToldOnceAndInOrder(t *testing.T) {
	var all incidents
	tell := func(id string, open bool, first, last int) {
		all.tell(Incident{ID: id, Open: open, First: at(first).UnixMilli(), Last: at(last).UnixMilli()})
	}
	tell("over", true, 0, 1)
	tell("old", true, 5, 6)
	tell("new", true, 10, 11)
	tell("over", false, 0, 20)
	tell("old", true, 5, 21)
	var ids []string
	for _, i := range all.view(at(30).UnixMilli()) {
		ids = append(ids, i.ID)
	}
	assert.Equal(t, []string{"new", "old", "over"}, ids)
	assert.Len(t, all.view(at(21).Add(closedKept).UnixMilli()), 2, "what is open is never forgotten")
}

func TestIncidentsThatAreOverAreBounded(t *testing.T) {
	var all incidents
	for i := range maxClosed + 5 {
		all.tell(Incident{ID: fmt.Sprint(i), Last: at(i).UnixMilli()})
	}
	got := all.view(at(60).UnixMilli())
	require.Len(t, got, maxClosed)
	assert.Equal(t, fmt.Sprint(maxClosed+4), got[0].ID)
}

func TestSlowestAreTheWorstOfLate(t *testing.T) {
	var s slowest
	for i := range maxSlowest + 20 {
		s.add(&Request{At: at(i).UnixMilli(), Excess: int64(i % 30)})
	}
	got := s.view(at(60).UnixMilli())
	require.Len(t, got, maxSlowest)
	for i := 1; i < len(got); i++ {
		assert.GreaterOrEqual(t, got[i-1].Excess, got[i].Excess)
	}
	assert.EqualValues(t, 29, got[0].Excess)
	assert.Less(t, got[0].At, got[1].At, "of equal ones the older is first")
	assert.Empty(t, s.view(at(60).Add(slowestKept).UnixMilli()))
}
