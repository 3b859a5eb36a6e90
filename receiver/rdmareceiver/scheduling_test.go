package rdmareceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

func TestScheduling(t *testing.T) {
	hog := verbs.Thread{TID: 7, Name: "hog"}
	for name, test := range map[string]struct {
		known bool
		is    verbs.Scheduling
		want  map[string]any
	}{
		"not watched": {false, verbs.Scheduling{}, map[string]any{}},
		"never away": {true, verbs.Scheduling{Whole: true}, map[string]any{
			attributePollRunnable: 0.0, attributePollSleep: 0.0, attributePollStopped: 0.0,
		}},
		"never interrupted":      {true, verbs.Scheduling{InterruptsKnown: true}, map[string]any{attributePollInterrupted: 0.0}},
		"nothing seen of a part": {true, verbs.Scheduling{}, map[string]any{}},
		"preempted": {true, verbs.Scheduling{Runnable: time.Millisecond, Instead: hog}, map[string]any{
			attributePollRunnable: 0.001, attributePollPreemptedBy: "hog",
		}},
		"by this collector": {true, verbs.Scheduling{Runnable: time.Millisecond, Instead: hog, ByCollector: true}, map[string]any{
			attributePollRunnable: 0.001, attributePollPreemptedBy: "hog",
		}},
		"nobody ran instead": {true, verbs.Scheduling{Runnable: time.Millisecond, Instead: verbs.Thread{Name: "swapper/0"}}, map[string]any{
			attributePollRunnable: 0.001,
		}},
		"asleep, stopped and interrupted": {true, verbs.Scheduling{Asleep: time.Second, Stopped: 2 * time.Second, Interrupted: time.Millisecond}, map[string]any{
			attributePollSleep: 1.0, attributePollStopped: 2.0, attributePollInterrupted: 0.001,
		}},
	} {
		attributes := pcommon.NewMap()
		putScheduling(attributes, &verbs.Completion{HasPollerScheduling: test.known, PollerScheduling: test.is})
		assert.Equal(t, test.want, attributes.AsRaw(), name)
	}
}
