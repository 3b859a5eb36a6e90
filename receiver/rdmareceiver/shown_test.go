package rdmareceiver

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// board is an extension that shows states.
type board struct {
	component.Component
	state *radar.State
}

func (b *board) Show(state *radar.State) (end func()) {
	b.state = state
	return func() { b.state = nil }
}

// hostWith has the extensions beside what another host has.
type hostWith struct {
	component.Host
	extensions map[component.ID]component.Component
}

func (h hostWith) GetExtensions() map[component.ID]component.Component { return h.extensions }

// withBoard has the rig start beside an extension that shows states, and one that
// does not.
func withBoard(r *rig) *board {
	b := &board{}
	r.host.Host = hostWith{r.host.Host, map[component.ID]component.Component{
		component.MustNewID("rdma_radar"): b, component.MustNewID("other"): nil,
	}}
	return b
}

func TestBoardShowsTheReceiverWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		b := withBoard(r)
		r.addMetrics(r.metrics)
		r.addTraces(r.traces)
		r.start()
		synctest.Wait()
		require.NotNil(t, b.state)
		view := b.state.View(time.Now(), 0)
		assert.Equal(t, radar.Running, view.Tracing.Phase)
		assert.Equal(t, "node-1", view.Node.Host)
		r.shutdown()
		assert.Nil(t, b.state)
	})
}

func TestBoardShowsWhatIsSlowAndWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withCauses(t)
		b := withBoard(r)
		r.start()
		r.engine.look(verbs.Snapshot{Queues: []verbs.QueueInfo{{
			ID: slowIn(verbs.StageDevice, trainer, 7).Queue, Device: "mlx5_0", State: verbs.QueueSynced,
		}}})
		for range 5 {
			r.slowAgain(verbs.StageDevice, trainer, 7)
			time.Sleep(time.Second)
		}
		view := b.state.View(time.Now(), 0)
		r.shutdown()

		require.Equal(t, []uint32{7}, view.Queues.QP)
		assert.Equal(t, "python3", view.Queues.Processes[0].Name)
		assert.Equal(t, 9, *view.Queues.Processes[0].Rank)
		require.Contains(t, view.Queues.Troubles, 0)
		assert.NotEqual(t, causeUnknown, view.Queues.Troubles[0].Cause)
		require.NotEmpty(t, view.Incidents)
		incident := view.Incidents[0]
		assert.True(t, incident.Open)
		assert.Contains(t, incident.Subject, "QP 0x7 on mlx5_0")
		assert.Equal(t, view.Queues.Troubles[0].Cause, incident.Cause)
		assert.NotEmpty(t, incident.For)
		require.NotEmpty(t, view.Slowest)
		assert.Equal(t, radar.QueueName{PID: trainer.TGID, Device: "mlx5_0", QP: 7}, view.Slowest[0].Queue)
		assert.NotEmpty(t, view.Slowest[0].Stages)
		require.NotEmpty(t, view.Lost)
		assert.Positive(t, view.Lost[0].Time)
	})
}

// A send is stuck for as long as it is, not just in the second in which it is found.
func TestBoardShowsWhatIsStuckForAsLongAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withCauses(t)
		b := withBoard(r)
		q := queueOf(trainer, 0x1234)
		q.ID, q.Oldest = theStuck().Queue, 1250*time.Millisecond
		r.start()
		time.Sleep(1300 * time.Millisecond)
		seen := func() {
			r.engine.look(verbs.Snapshot{Monotonic: 5_050_000_000 + uint64(q.Oldest), Queues: []verbs.QueueInfo{q}})
		}
		seen()
		r.engine.stuck <- theStuck()
		for range 6 {
			time.Sleep(time.Second)
			assert.EqualValues(t, 1, b.state.View(time.Now(), 0).Queues.Troubles[0].Stuck, q.Oldest)
			q.Oldest += time.Second
			seen()
		}
		q.Oldest = 0
		seen()
		time.Sleep(3 * time.Second)
		trouble := b.state.View(time.Now(), 0).Queues.Troubles[0]
		assert.Zero(t, trouble.Stuck, "it is over")
		assert.NotZero(t, trouble.Since)
		r.shutdown()
	})
}

func TestBoardShowsThatTracingCannotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.platform.startEngine = func(context.Context, engineConfig) (engine, error) { return nil, errNoBPF }
		r.factory = newFactory(r.platform)
		b := withBoard(r)
		r.addMetrics(r.metrics)
		r.start()
		synctest.Wait()
		view := b.state.View(time.Now(), 0)
		r.shutdown()
		assert.Equal(t, radar.Failed, view.Tracing.Phase)
		assert.Contains(t, view.Tracing.Reason, "CAP_BPF")
	})
}

// Whoever leaves out the addresses of peers leaves them out everywhere.
func TestBoardHidesPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.cfg.PeerAddresses = false
		b := withBoard(r)
		r.addMetrics(r.metrics)
		r.start()
		path := verbs.Path{RemoteGID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: 9}, GIDType: verbs.GIDTypeRoCEv2}
		r.engine.look(verbs.Snapshot{Queues: []verbs.QueueInfo{{ID: verbs.QueueID{Process: trainer, QPNumber: 7}, Device: "mlx5_0", Path: path}}})
		time.Sleep(3 * time.Second)
		view := b.state.View(time.Now(), 0)
		r.shutdown()
		require.Equal(t, 1, view.Queues.Len())
		text, err := json.Marshal(view)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "10.0.0.9")
	})
}

func TestNothingIsShownWithoutABoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.addMetrics(r.metrics)
		r.start()
		time.Sleep(3 * time.Second)
		assert.Nil(t, r.components[0].(*signalReceiver).shared.shown.state)
		r.shutdown()
	})
}
