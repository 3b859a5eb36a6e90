package diagnose

import (
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestExcludes(t *testing.T) {
	preempted, busy := pollerPreemptedCause(), pollerBusyCause()
	// there is a request of a slow device, whose poller was on its CPU.
	there := func() verbs.Completion {
		return slowOnes(1, lookedAt(usec, 0, 4*msec, 5*usec), while(verbs.Scheduling{Runnable: 100 * usec})).Slow[0]
	}
	for name, test := range map[string]struct {
		change func(*verbs.Completion)
		want   bool
	}{
		"on its CPU":             {func(*verbs.Completion) {}, true},
		"preempted":              {func(c *verbs.Completion) { c.PollerScheduling.Runnable = 2 * msec }, false},
		"throttled or stopped":   {func(c *verbs.Completion) { c.PollerScheduling.Stopped = 2 * msec }, false},
		"asleep":                 {func(c *verbs.Completion) { c.PollerScheduling.Asleep = 2 * msec }, false},
		"not known":              {func(c *verbs.Completion) { c.HasPollerScheduling = false }, false},
		"not known as a whole":   {func(c *verbs.Completion) { c.PollerScheduling.Whole = false }, false},
		"failed":                 {func(c *verbs.Completion) { c.Status = verbs.StatusWRFlushErr }, false},
		"behind another request": {func(c *verbs.Completion) { c.Stages[verbs.StageQueue], c.Stages[verbs.StageDevice] = 3*msec, msec }, false},
		"polled late":            {func(c *verbs.Completion) { c.Stages[verbs.StagePoll], c.Stages[verbs.StageDevice] = 3*msec, msec }, false},
	} {
		c := there()
		test.change(&c)
		if got := preempted.Excludes(&c); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
		if busy.Excludes(&c) {
			t.Errorf("%s: it excludes a cause on the CPU", name)
		}
	}
}

// A cause is never named for a burst that holds nothing but what it excludes.
func TestWhatIsExcludedIsNotNamed(t *testing.T) {
	causes := Causes()
	for name, b := range map[string]*Burst{
		"polls were seen": slowOnes(5, lookedAt(usec, 0, 4*msec, 5*usec), while(verbs.Scheduling{Runnable: 700 * usec})),
		"they were not":   slowOnes(5, unlooked(4*msec), while(verbs.Scheduling{Asleep: 700 * usec})),
	} {
		verdict := Judge(b, causes)
		for i := range causes {
			if c := &causes[i]; c.Name == verdict.Cause && c.Excludes(&b.Slow[0]) {
				t.Errorf("%s: %+v", name, verdict)
			}
		}
	}
}
