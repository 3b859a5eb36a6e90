package rdmareceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// putScheduling puts what the kernel did with the polling thread while the work
// request was under way. Nothing is put of a thread that was not watched; where only
// the last absences or interrupts are known, none is no value.
func putScheduling(to pcommon.Map, c *verbs.Completion) {
	if !c.HasPollerScheduling {
		return
	}
	s := &c.PollerScheduling
	put := func(key string, spent time.Duration, whole bool) {
		if spent > 0 || whole {
			to.PutDouble(key, secondsOf(spent))
		}
	}
	put(attributePollRunnable, s.Runnable, s.Whole)
	put(attributePollSleep, s.Asleep, s.Whole)
	put(attributePollStopped, s.Stopped, s.Whole)
	put(attributePollInterrupted, s.Interrupted, s.InterruptsKnown)
	if s.Runnable > 0 && s.Instead.TID != 0 {
		putString(to, attributePollPreemptedBy, s.Instead.Name)
	}
}
