package rdmareceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/process"
)

func TestDeepestIdleState(t *testing.T) {
	us, second := time.Microsecond, uint64(time.Second)
	states := []fabric.IdleState{{Name: "POLL"}, {Name: "C1", Latency: 2 * us, Entered: 5}, {Name: "C6", Latency: 133 * us, Entered: 9}}
	reads := 0
	var failure error
	s := &idleStates{read: func(cpu uint32) ([]fabric.IdleState, error) {
		reads++
		assert.EqualValues(t, 3, cpu)
		return append([]fabric.IdleState(nil), states...), failure
	}}
	assert.Nil(t, s.deepest(3, second), "nothing is known of before")
	states[1].Entered, states[2].Entered = 7, 13
	want := &diagnose.CPUIdle{State: "C6", Latency: 133 * us, Entered: 4}
	assert.Equal(t, want, s.deepest(3, 2*second))
	assert.Equal(t, want, s.deepest(3, 2*second), "of another queue pair in the window")
	assert.Equal(t, 2, reads)
	states[1].Entered = 8
	assert.Equal(t, &diagnose.CPUIdle{State: "C1", Latency: 2 * us, Entered: 1}, s.deepest(3, 3*second))
	assert.Equal(t, &diagnose.CPUIdle{State: "POLL"}, s.deepest(3, 4*second), "never idle")
	states[1].Entered = 2
	assert.Nil(t, s.deepest(3, 5*second), "another driver counts anew")
	assert.Nil(t, s.deepest(3, 60*second), "the reading before is too old")
	failure = process.ErrGone
	assert.Nil(t, s.deepest(3, 61*second))

	assert.Nil(t, (&idleStates{}).deepest(3, second))
	none := &idleStates{read: func(uint32) ([]fabric.IdleState, error) { return nil, nil }}
	none.deepest(3, second)
	assert.Nil(t, none.deepest(3, 2*second), "the kernel does not manage them")
	for cpu := range uint32(3 * maxIdleCPUs) {
		none.deepest(cpu, second)
	}
	assert.LessOrEqual(t, len(none.cpus), maxIdleCPUs)
}
