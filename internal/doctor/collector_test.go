package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/fabric/fabrictest"
	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/radarclient"
)

func running(phase radar.Phase, change func(*radar.View)) radar.View {
	v := radar.View{Tracing: radar.Tracing{Phase: phase, Reason: "because"}, Now: radar.Pace{Queues: 3}}
	if change != nil {
		change(&v)
	}
	return v
}

func TestCollector(t *testing.T) {
	for name, test := range map[string]struct {
		view radar.View
		err  error
		want []expected
	}{
		"not running": {err: fmt.Errorf("%w on /run", radarclient.ErrNotRunning), want: []expected{{Note, "no collector answers"}}},
		"denied":      {err: fmt.Errorf("%w: run this as root", radarclient.ErrDenied), want: []expected{{Unknown, "run this as root"}}},
		"nonsense":    {err: errors.New("is no view"), want: []expected{{Warning, "is no view"}}},
		"absent":      {view: running(radar.Absent, nil), want: []expected{{Warning, "Name the receiver rdma"}}},
		"starting":    {view: running(radar.Starting, nil), want: []expected{{Note, "Look again"}}},
		"failed":      {view: running(radar.Failed, nil), want: []expected{{Problem, "traces nothing: because"}}},
		"impaired":    {view: running(radar.Impaired, nil), want: []expected{{OK, "traces 3 queues"}, {Warning, "because"}}},
		"running": {view: running(radar.Running, func(v *radar.View) {
			v.Probes = []radar.Probe{
				{Functions: []string{"poll_cq", "post_send"}, Mode: "site", Used: true, Observed: 1},
				{Functions: []string{"poll_cq"}, Mode: "windows", Used: true, Observed: 0.42},
				{Functions: []string{"poll_cq"}, Mode: "site"},
				{Functions: []string{"ib_query_qp"}, Mode: "control", Used: true},
			}
		}), want: []expected{{OK, "traces 3 queues, by functions 1 in the mode windows, 2 in the mode site, the least for 42 % of the time"}}},
		"books": {view: running(radar.Running, func(v *radar.View) {
			v.Now.Untimed = 1
			v.Books = radar.Books{UntrackedQueues: 7, Lost: map[string]uint64{"a": 1, "b": 5}, Losses: map[string]uint64{"b": 1, "c": 3, "d": 2, "e": 1, "below_reporting_floor": 99, "usual_for_its_kind": 99, "duplicate_probe": 99}}
		}), want: []expected{{OK, "3 queues"}, {Note, "1 queue is counted and not timed"}, {Warning, "7 queues find no room and are not seen | At most 4,096 queues are followed. | Leave some out with processes or devices"}, {Note, "b 6, c 3, d 2, a 1"}}},
	} {
		expect(t, name, judgeCollector(test.view, test.err), test.want...)
	}
}

// A collector that traces is proof enough: its jobs are not disturbed for another.
func TestNothingIsTriedBesideACollector(t *testing.T) {
	for phase, want := range map[radar.Phase]Level{radar.Running: OK, radar.Impaired: OK, radar.Failed: Problem, radar.Absent: Problem, radar.Starting: Unknown} {
		s := machine(t, fabrictest.NoRDMA, shows{view: running(phase, nil)})
		assert.Equal(t, want, worst(s.checkTracing(t.Context())), string(phase))
	}
	assert.Equal(t, Problem, worst(machine(t, fabrictest.NoRDMA, noCollector{}).checkTracing(t.Context())), "nobody traces")
	assert.Equal(t, Unknown, worst(machine(t, fabrictest.NoRDMA, stuck{}).checkTracing(t.Context())), "somebody is there")
}

// stuck is a collector that does not answer.
type stuck struct{ noCollector }

func (stuck) View(context.Context) (radar.View, error) {
	return radar.View{}, context.DeadlineExceeded
}

// Whether a node is traced decides nothing about its health, and is said as it is.
func TestTracedShortly(t *testing.T) {
	for says, test := range map[string]struct {
		phase radar.Phase
		err   error
	}{
		"traced":                       {phase: radar.Impaired},
		"the collector traces nothing": {phase: radar.Failed},
		"no collector answers":         {err: fmt.Errorf("%w on /run", radarclient.ErrNotRunning)},
		"the collector was not asked, permission denied": {err: fmt.Errorf("%w: be root", radarclient.ErrDenied)},
		"who answers is no collector":                    {err: fmt.Errorf("it is %w", radarclient.ErrNoView)},
		"the collector does not tell whether it traces":  {err: context.DeadlineExceeded},
	} {
		findings := tracedShortly(radar.Tracing{Phase: test.phase}, test.err)
		assert.Equal(t, says, findings[0].What)
		assert.Less(t, findings[0].Level, Warning)
	}
}

// How many queues are followed is what the maps have room for.
func TestQueuesThatAreFollowed(t *testing.T) {
	source, err := os.ReadFile("../../bpf/maps/queues.h")
	require.NoError(t, err)
	assert.Contains(t, string(source), "__uint(max_entries, 4096)")
	findings := judgeBooks(&radar.View{Books: radar.Books{UntrackedQueues: 1}})
	assert.Equal(t, "1 queue finds no room and is not seen", findings[0].What)
	assert.Equal(t, "At most 4,096 queues are followed.", findings[0].Means)
}
