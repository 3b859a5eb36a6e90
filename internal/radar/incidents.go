package radar

import (
	"cmp"
	"slices"
	"time"
)

const (
	// closedKept is for how long an incident that is over is told, maxClosed how
	// many of those are.
	closedKept = 30 * time.Minute
	maxClosed  = 16
)

// incidents are those that are open and those that were of late.
type incidents struct {
	all []Incident
}

// tell takes an incident as it is now, in place of what it was before.
func (i *incidents) tell(now Incident) {
	at := slices.IndexFunc(i.all, func(known Incident) bool { return known.ID == now.ID })
	if at < 0 {
		i.all = append(i.all, now)
	} else {
		i.all[at] = now
	}
	if !now.Open {
		i.forget(now.Last)
	}
}

// forget drops those that are long over, and all but the last that are over.
func (i *incidents) forget(now int64) {
	slices.SortStableFunc(i.all, weightiestFirst)
	closed := 0
	i.all = slices.DeleteFunc(i.all, func(known Incident) bool {
		if known.Open {
			return false
		}
		closed++
		return closed > maxClosed || now-known.Last > closedKept.Milliseconds()
	})
}

// weightiestFirst has those that are open before those that are over, what lost the most
// time first. Of those that are over it is the last.
func weightiestFirst(a, b Incident) int {
	switch {
	case a.Open && b.Open:
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(b.First, a.First))
	case a.Open:
		return -1
	case b.Open:
		return 1
	default:
		return cmp.Compare(b.Last, a.Last)
	}
}

func (i *incidents) view(now int64) []Incident {
	i.forget(now)
	return append([]Incident{}, i.all...)
}
