package rdmareceiver

import (
	"slices"
	"sync"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// maxAccounts is how many rows are kept: a quarter of an hour of one queue pair
// that is slow all the time, or half a minute of thirty.
const maxAccounts = 1024

// account is what was slow on one queue pair in one window.
type account struct {
	// Start and End are the window on CLOCK_MONOTONIC, in nanoseconds.
	Start, End uint64
	Queue      verbs.QueueID
	Device     string
	// Slow counts the completions that were slow or failed, Lost is the time that
	// they lost, and Cause why.
	Slow  uint64
	Lost  time.Duration
	Cause string
	// Stages is where their whole time went.
	Stages [verbs.NumStages]time.Duration
}

// accounting keeps the accounts of late, so that it can be told where the time of
// a step went. It is safe for concurrent use.
type accounting struct {
	mu   sync.Mutex
	rows []account
	// next is the place of the next row, once all are taken.
	next int
}

// add enters what was judged in a window.
func (a *accounting) add(start, end uint64, judged []judged) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range judged {
		if j := &judged[i]; j.reported > 0 {
			a.enter(account{
				Start: start, End: end, Queue: j.queue, Device: j.device,
				Slow: j.reported, Lost: j.lost, Cause: j.verdict.Cause, Stages: j.stages,
			})
		}
	}
}

// enter needs mu.
func (a *accounting) enter(row account) {
	if len(a.rows) < maxAccounts {
		a.rows = append(a.rows, row)
		return
	}
	a.rows[a.next] = row
	a.next = (a.next + 1) % maxAccounts
}

// Table returns the accounts, the oldest first.
func (a *accounting) Table() []account {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Concat(a.rows[a.next:], a.rows[:a.next])
}
