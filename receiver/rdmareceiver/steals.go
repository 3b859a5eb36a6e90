package rdmareceiver

import (
	"slices"
	"time"
)

// steals remembers for how long a hypervisor took CPUs away, second by second. Where
// it never did, /proc/stat is read when something is slow alone: the kernel adds up
// every interrupt for it. It is not safe for concurrent use.
type steals struct {
	// read returns the time so far by CPU. nil where there is no such source.
	read func() (map[uint32]time.Duration, error)
	// virtual is set when a CPU was taken away since boot.
	virtual bool
	// recent has the last readings, the oldest first.
	recent []stealReading
}

type stealReading struct {
	at uint64
	of map[uint32]time.Duration
}

// look reads what was taken until now.
func (s *steals) look(now uint64, slow bool) {
	if s.read == nil || !slow && !s.virtual && len(s.recent) > 0 {
		return
	}
	of, err := s.read()
	if err != nil {
		of = nil
	}
	for _, stolen := range of {
		s.virtual = s.virtual || stolen > 0
	}
	if len(s.recent) == maxTallies {
		s.recent = slices.Delete(s.recent, 0, 1)
	}
	s.recent = append(s.recent, stealReading{now, of})
}

// took is for how long a CPU was taken away from the last reading before a moment
// until now, nil when that is not known.
func (s *steals) took(cpu uint32, since uint64) *time.Duration {
	if len(s.recent) == 0 {
		return nil
	}
	after, ok := s.recent[len(s.recent)-1].of[cpu]
	if !ok {
		return nil
	}
	before := time.Duration(-1)
	for _, reading := range s.recent[:len(s.recent)-1] {
		if stolen, read := reading.of[cpu]; read && (before < 0 || reading.at <= since+uint64(glanceDelay)) {
			before = stolen
		}
	}
	if after == 0 {
		before = 0
	}
	if before < 0 || after < before {
		return nil
	}
	took := after - before
	return &took
}
