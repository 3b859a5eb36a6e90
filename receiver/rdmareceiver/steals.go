package rdmareceiver

import "time"

// steals remembers for how long a hypervisor took CPUs away. Where it never did,
// /proc/stat is read only when something is slow: the kernel adds up every interrupt
// for it. It is not safe for concurrent use.
type steals struct {
	// read returns the time so far by CPU. nil where there is no such source.
	read func() (map[uint32]time.Duration, error)
	// virtual is set when a CPU was taken away since boot.
	virtual bool
	stolen  readings[uint32, time.Duration]
}

// look reads what was taken until now.
func (s *steals) look(now uint64, slow bool) {
	if s.read == nil || !slow && !s.virtual && len(s.stolen.recent) > 0 {
		return
	}
	of, err := s.read()
	if err != nil {
		of = nil
	}
	for _, stolen := range of {
		s.virtual = s.virtual || stolen > 0
	}
	s.stolen.add(now, of)
}

// took is for how long a CPU was taken away from the last reading before a moment
// until now, nil when that is not known.
func (s *steals) took(cpu uint32, since uint64) *time.Duration {
	after, ok := s.stolen.latest(cpu)
	if !ok {
		return nil
	}
	before, ok := s.stolen.before(cpu, since)
	if after == 0 {
		before, ok = 0, true
	}
	if !ok || after < before {
		return nil
	}
	took := after - before
	return &took
}
