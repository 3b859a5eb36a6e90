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
	s.all = slices.DeleteFunc(s.all, func(known Request) bool {
		age := now - known.At
		// One that is still to come is from before the wall clock was set back.
		return age > slowestKept.Milliseconds() || age < -time.Minute.Milliseconds()
	})
}

func (s *slowest) view(now int64) []Request {
	s.forget(now)
	return append([]Request{}, s.all...)
}
