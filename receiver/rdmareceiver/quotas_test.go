package rdmareceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/process"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestQuotas(t *testing.T) {
	ms := time.Millisecond
	second := uint64(time.Second)
	ran := func(n uint64, took time.Duration) *process.Throttling {
		return &process.Throttling{Count: n, Time: took}
	}
	for name, test := range map[string]struct {
		// readings are of one second each; nil cannot be read.
		readings []*process.Throttling
		since    uint64
		want     *diagnose.Throttling
	}{
		"no quota":                    {[]*process.Throttling{ran(0, 0)}, second, &diagnose.Throttling{}},
		"it has not run out":          {[]*process.Throttling{ran(7, ms), ran(7, ms)}, second, &diagnose.Throttling{}},
		"it has run out":              {[]*process.Throttling{ran(7, ms), ran(9, 50*ms)}, second, &diagnose.Throttling{Count: 2, Time: 49 * ms}},
		"what was before is left out": {[]*process.Throttling{ran(1, ms), ran(7, 5*ms), ran(9, 50*ms)}, 2*second + second/2, &diagnose.Throttling{Count: 2, Time: 45 * ms}},
		"a quota is set":              {[]*process.Throttling{ran(0, 0), ran(3, 9*ms)}, second, &diagnose.Throttling{Count: 3, Time: 9 * ms}},
		"as far back as is known":     {[]*process.Throttling{nil, ran(7, ms), ran(9, 2*ms)}, second, &diagnose.Throttling{Count: 2, Time: ms}},
		"nothing is known of before":  {[]*process.Throttling{nil, ran(9, ms)}, second, nil},
		"another control group":       {[]*process.Throttling{ran(9, ms), ran(7, 2*ms)}, second, nil},
		"it cannot be read":           {[]*process.Throttling{ran(9, ms), nil}, second, nil},
		"nothing was read":            {nil, second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			q := &quotas{}
			for i, reading := range test.readings {
				q.read = func(pid int) (process.Throttling, error) {
					assert.EqualValues(t, trainer.TGID, pid)
					if reading == nil {
						return process.Throttling{}, process.ErrGone
					}
					return *reading, nil
				}
				at := uint64(i+1) * second
				q.look(&verbs.Snapshot{Monotonic: at, Queues: []verbs.QueueInfo{{ID: verbs.QueueID{Process: trainer}, Activity: at}}})
			}
			assert.Equal(t, test.want, q.took(trainer, test.since))
			assert.Nil(t, q.took(nobody, test.since))
		})
	}
}

func TestQuotasAreReadOfTheActive(t *testing.T) {
	var read []int
	q := &quotas{read: func(pid int) (process.Throttling, error) {
		read = append(read, pid)
		return process.Throttling{}, nil
	}}
	now := uint64(time.Minute)
	of := func(tgid uint32, activity uint64, outstanding uint32) verbs.QueueInfo {
		return verbs.QueueInfo{ID: verbs.QueueID{Process: verbs.ProcessID{TGID: tgid}}, Activity: activity, Outstanding: outstanding}
	}
	snap := &verbs.Snapshot{Monotonic: now, Queues: []verbs.QueueInfo{
		of(1, now, 0), of(1, now, 0), of(2, 1, 1), of(3, 1, 0), of(verbs.KernelTGID|4, now, 0),
	}}
	q.look(snap)
	assert.Equal(t, []int{1, 2}, read)

	read, snap.Queues = nil, nil
	for i := range uint32(2 * maxQuotas) {
		snap.Queues = append(snap.Queues, of(i+1, now, 0))
	}
	for range 2 * maxTallies {
		q.look(snap)
	}
	assert.Len(t, read, 2*maxTallies*maxQuotas)
	assert.Len(t, q.taken.recent, maxTallies)

	(&quotas{}).look(snap)
}
