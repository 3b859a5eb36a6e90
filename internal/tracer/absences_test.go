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
		to.InsteadTid = uint32(100 + i)
		if s.Moves += 2; a[3] == 0 {
			s.Moves--
		}
	}
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
			verbs.Scheduling{Runnable: 60, Longest: 4, Switches: 15, Instead: verbs.Thread{TID: 139}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, schedulingBetween(test.schedule, from, to))
		})
	}
	late := scheduleOf(0)
	late.SinceNs = 1500
	assert.False(t, schedulingBetween(late, from, to).Whole, "not watched all the time")
	lost := scheduleOf(0)
	lost.LostNs = 1500
	assert.False(t, schedulingBetween(lost, from, to).Whole)
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
