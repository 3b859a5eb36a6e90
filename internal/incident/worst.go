package incident

import (
	"cmp"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// maxWorst is how many queue pairs are known as the worst.
const maxWorst = 3

// worst are the queue pairs on which something took longest, the worst first. Who is
// not among them never took longer than the last of them: it is nothing to remember.
type worst []slowest

type slowest struct {
	queue verbs.QueueID
	took  time.Duration
}

func (w *worst) add(queue verbs.QueueID, took time.Duration) {
	at := slices.IndexFunc(*w, func(s slowest) bool { return s.queue == queue })
	if at < 0 {
		*w = append(*w, slowest{queue, took})
	} else {
		(*w)[at].took = max((*w)[at].took, took)
	}
	slices.SortStableFunc(*w, func(a, b slowest) int { return cmp.Compare(b.took, a.took) })
	*w = (*w)[:min(len(*w), maxWorst)]
}

func (w worst) queues() []verbs.QueueID {
	all := make([]verbs.QueueID, 0, len(w))
	for _, s := range w {
		all = append(all, s.queue)
	}
	return all
}
