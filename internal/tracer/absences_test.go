package tracer

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

const absentAsleep = 1

// scheduleOf is of a thread that was away as listed, the last time until now if it
// has not come back.
func scheduleOf(woken uint64, absences ...[4]uint64) *bpf.TrackerSchedule {
	s := &bpf.TrackerSchedule{SinceNs: 1, WokenNs: woken}
	for i, a := range absences {
		to := &s.Absences[i%len(s.Absences)]
		to.Kind, to.OffNs, to.WantedNs, to.OnNs = uint32(a[0]), a[1], a[2], a[3]
		to.Instead.Tid, to.Instead.Ns = uint32(100+i), a[3]-a[2]
		if s.Moves += 2; a[3] == 0 {
			s.Moves--
			s.Last.Tid, s.CountedNs = uint32(100+i), max(a[1], woken)
		}
	}
	return s
}

// turns is how long which threads ran, and of which processes they are.
type turns [][3]uint64

// insteadOf makes the turns those of an absence that is over.
func insteadOf(s *bpf.TrackerSchedule, absence int, who, process, spent uint64) *bpf.TrackerSchedule {
	s.Absences[absence].Instead = bpf.TrackerStandIn{Ns: spent, Tid: uint32(who), Tgid: uint32(process)}
	return s
}

// presently makes the turns those of the absence that lasts, and who has its turn now.
func presently(s *bpf.TrackerSchedule, over turns, now, process uint64) *bpf.TrackerSchedule {
	for i, turn := range over {
		s.CountedNs += turn[2]
		s.StandIns.Of[i] = bpf.TrackerStandIn{Tid: uint32(turn[0]), Tgid: uint32(turn[1]), Ns: turn[2]}
	}
	s.Last = bpf.TrackerStandIn{Tid: uint32(now), Tgid: uint32(process)}
	return s
}

func TestSchedulingBetween(t *testing.T) {
	const from, to = 1000, 2000
	many := make([][4]uint64, 40)
	for i := range many {
		at := uint64(1000 + 10*i)
		many[i] = [4]uint64{absentRunnable, at, at, at + 4}
	}
	for name, test := range map[string]struct {
		schedule *bpf.TrackerSchedule
		want     verbs.Scheduling
	}{
		"never away":         {scheduleOf(0), verbs.Scheduling{Whole: true}},
		"stopped until now":  {scheduleOf(0, [4]uint64{absentHeld, 1200, 0, 0}), verbs.Scheduling{Stopped: 800, Longest: 800, Switches: 1, Whole: true}},
		"stopped long since": {scheduleOf(0, [4]uint64{absentHeld, 500, 0, 0}), verbs.Scheduling{Stopped: 1000, Longest: 1000, Switches: 1, Whole: true}},
		"woken and not run": {
			scheduleOf(1500, [4]uint64{absentAsleep, 1200, 0, 0}),
			verbs.Scheduling{Asleep: 300, Runnable: 500, Longest: 800, Switches: 1, Instead: verbs.Thread{TID: 100}, Whole: true},
		},
		"preempted until now": {
			scheduleOf(0, [4]uint64{absentRunnable, 1900, 0, 0}),
			verbs.Scheduling{Runnable: 100, Longest: 100, Switches: 1, Instead: verbs.Thread{TID: 100}, Whole: true},
		},
		"over before, and after": {
			scheduleOf(0, [4]uint64{absentHeld, 100, 200, 210}, [4]uint64{absentAsleep, 900, 1100, 1110}, [4]uint64{absentHeld, 2100, 0, 0}),
			verbs.Scheduling{Asleep: 100, Runnable: 10, Longest: 110, Switches: 1, Instead: verbs.Thread{TID: 101}, Whole: true},
		},
		"more often than is kept": {
			scheduleOf(0, many...),
			verbs.Scheduling{Runnable: 60, Longest: 4, Switches: 15, Instead: verbs.Thread{TID: 125}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, schedulingBetween(test.schedule, from, to, collector))
		})
	}
	late := scheduleOf(0)
	late.SinceNs = 1500
	assert.False(t, schedulingBetween(late, from, to, collector).Whole, "not watched all the time")
	lost := scheduleOf(0)
	lost.LostNs = 1500
	assert.False(t, schedulingBetween(lost, from, to, collector).Whole)
}

// The thread to blame is the one that ran for the longest time of all absences, whoever
// came first, and it is said when that is the collector's.
func TestInsteadIsWhoRanLongest(t *testing.T) {
	const from, to = 1000, 2000
	// Away three times, for 100, 60 and 60.
	thrice := func() *bpf.TrackerSchedule {
		return scheduleOf(0, [4]uint64{absentRunnable, 1100, 1100, 1200}, [4]uint64{absentRunnable, 1300, 1300, 1360}, [4]uint64{absentRunnable, 1400, 1400, 1460})
	}
	lasting := func(off uint64) *bpf.TrackerSchedule { return scheduleOf(0, [4]uint64{absentRunnable, off, 0, 0}) }
	for name, test := range map[string]struct {
		schedule    *bpf.TrackerSchedule
		want        uint32
		byCollector bool
	}{
		"the longest absence's":          {insteadOf(insteadOf(insteadOf(thrice(), 0, 7, 7, 90), 1, 8, 8, 30), 2, 9, 9, 50), 7, false},
		"of two absences together":       {insteadOf(insteadOf(insteadOf(thrice(), 0, 7, 7, 90), 1, 8, 8, 55), 2, 8, 8, 55), 8, false},
		"no more than it was wanted for": {insteadOf(scheduleOf(0, [4]uint64{absentRunnable, 500, 500, 1100}, [4]uint64{absentRunnable, 1300, 1300, 1500}), 0, 7, 7, 600), 101, false},
		"the collector":                  {insteadOf(insteadOf(thrice(), 1, collector, collector, 60), 2, collector, collector, 60), collector, true},
		"the collector, but shorter":     {insteadOf(insteadOf(thrice(), 1, collector, collector, 40), 2, collector, collector, 40), 100, false},
		"now, and all the time":          {presently(lasting(1500), nil, 7, 7), 7, false},
		"now, but not for long":          {presently(lasting(1500), turns{{8, 8, 300}, {9, 9, 150}}, 7, 7), 8, false},
		"came first, and again":          {presently(lasting(1500), turns{{7, 7, 200}, {8, 8, 220}}, 7, 7), 7, false},
		"nobody, for the longest time":   {presently(lasting(1500), turns{{7, 7, 100}}, 0, 0), 0, false},
		"ran only before":                {presently(lasting(500), turns{{8, 8, 450}, {9, 9, 100}}, 7, 7), 7, false},
		"ran before, and for longer":     {presently(lasting(500), turns{{9, 9, 100}, {8, 8, 1200}, {7, 7, 10}}, 6, 6), 8, false},
		"lasts, the collector":           {presently(lasting(1500), turns{{8, 8, 10}}, 7, collector), 7, true},
	} {
		t.Run(name, func(t *testing.T) {
			if test.want == 0 {
				test.schedule.Last.Comm[0] = 's' // The idle thread's.
			}
			got := schedulingBetween(test.schedule, from, to, collector)
			assert.Equal(t, test.want, got.Instead.TID)
			assert.Equal(t, test.byCollector, got.ByCollector)
		})
	}
}

// What a program changed between two reads is read again, until it stands still.
func TestAgreed(t *testing.T) {
	failed := errors.New("gone")
	for name, test := range map[string]struct {
		reads []int // -1 fails
		want  int
		ok    bool
		took  int
	}{
		"at once":      {[]int{1, 1, 2}, 1, true, 2},
		"half written": {[]int{1, 2, 2}, 2, true, 3},
		"fails":        {[]int{-1, 1, 1}, 0, false, 1},
		"fails later":  {[]int{1, -1, 1, 1}, 0, false, 2},
		"never":        {[]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 9}, 0, false, readsToAgree},
	} {
		t.Run(name, func(t *testing.T) {
			took := 0
			got, ok := agreed(func() (int, error) {
				took++
				if test.reads[took-1] < 0 {
					return 0, failed
				}
				return test.reads[took-1], nil
			})
			assert.Equal(t, test.ok, ok)
			assert.Equal(t, test.took, took)
			if ok {
				assert.Equal(t, test.want, got)
			}
		})
	}
}
