package radar

import (
	"slices"
	"time"
)

const (
	// slowestKept is for how long a slow work request is told, maxSlowest how many
	// are.
	slowestKept = 10 * time.Minute
	maxSlowest  = 40
)

// slowest are the worst of the slow work requests of late, the worst first.
type slowest struct {
	all []Request
}

func (s *slowest) add(r *Request) {
	s.forget(r.At)
	at, _ := slices.BinarySearchFunc(s.all, r.Excess, func(known Request, excess int64) int {
		// Those with more come first, of equal ones the older.
		if known.Excess >= excess {
			return -1
		}
		return 1
	})
	if at >= maxSlowest {
		return
	}
	s.all = slices.Insert(s.all, at, *r)
	s.all = s.all[:min(len(s.all), maxSlowest)]
}

func (s *slowest) forget(now int64) {
	s.all = slices.DeleteFunc(s.all, func(known Request) bool { return now-known.At > slowestKept.Milliseconds() })
}

// forgetAfter is for a wall clock that was set back to a moment: what is after that
// would never be forgotten.
func (s *slowest) forgetAfter(moment int64) {
	s.all = slices.DeleteFunc(s.all, func(known Request) bool { return known.At > moment })
}

func (s *slowest) view(now int64) []Request {
	s.forget(now)
	return append([]Request{}, s.all...)
}
