package rdmareceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// putScheduling puts what the kernel did with the polling thread while the work
// request was under way. Nothing is put of a thread that was not watched; where only
// the last absences are known, none is no value.
func putScheduling(to pcommon.Map, c *verbs.Completion) {
	if !c.HasPollerScheduling {
		return
	}
	s := &c.PollerScheduling
	put := func(key string, spent time.Duration) {
		if spent > 0 || s.Whole {
			to.PutDouble(key, secondsOf(spent))
		}
	}
	put(attributePollRunnable, s.Runnable)
	put(attributePollSleep, s.Asleep)
	put(attributePollStopped, s.Stopped)
	if s.Interrupted > 0 {
		to.PutDouble(attributePollInterrupted, secondsOf(s.Interrupted))
	}
	if s.Runnable > 0 && s.Instead.TID != 0 {
		putString(to, attributePollPreemptedBy, s.Instead.Name)
	}
}
