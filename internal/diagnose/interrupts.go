package diagnose

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// Interrupts are watched from the first slow request on until some seconds after the
// last. A burst that begins and ends within that, and the beginning of each, is not
// told from work of the thread itself.

// unwatched is how long the poller of a request may have been kept from polling
// by interrupts that nobody watched.
func unwatched(c *verbs.Completion) time.Duration {
	switch {
	case !c.HasPollerScheduling || c.PollerScheduling.InterruptsKnown:
		return 0
	case c.Known.Has(verbs.StagePoll):
		return free(away)(c)
	default:
		return c.Excess() - away(&c.PollerScheduling)
	}
}

// weighInterrupts notes that for most of the time interrupts were not watched.
func (o *opinion) weighInterrupts(b *Burst) {
	if l := b.measure(unwatched); l.Explains() >= half {
		o.misses(Possible, missingInterrupts)
	}
}

// lackingInterrupts is the judgement where none were seen, but may have been.
func (b *Burst) lackingInterrupts() Judgement {
	if l := b.measure(unwatched); l.Explains() < half {
		return Judgement{}
	}
	return lacking(missingInterrupts)
}
