package rdmareceiver

import (
	"time"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

const (
	// maxIdleCPUs bounds the CPUs of which idle states are remembered.
	maxIdleCPUs = 1024
	// idleStateAge is how old a reading may be to be that of the window before.
	idleStateAge = 3 * time.Second
)

// idleStates remembers which idle states the CPUs of sleeping pollers were in: they
// are read while something is slow, and so nothing is known of the first second of
// it. It is not safe for concurrent use.
type idleStates struct {
	// read returns the states of a CPU, the shallowest first. nil where there is no
	// such source.
	read func(cpu uint32) ([]fabric.IdleState, error)
	cpus map[uint32]idleReading
}

// idleReading is the last reading of a CPU and the one of the window before.
type idleReading struct {
	at     uint64
	states []fabric.IdleState
	before []fabric.IdleState
}

// deepest is the deepest state that a CPU entered in the window that ended now, nil
// when that is not known. Of one that entered none it is the first, entered 0 times.
func (s *idleStates) deepest(cpu uint32, now uint64) *diagnose.CPUIdle {
	if s.read == nil {
		return nil
	}
	last := s.look(cpu, now)
	if len(last.before) == 0 || len(last.before) != len(last.states) {
		return nil
	}
	var deepest *diagnose.CPUIdle
	for i, state := range last.states {
		if state.Entered < last.before[i].Entered {
			return nil // Another driver counts by now.
		}
		if entered := state.Entered - last.before[i].Entered; entered > 0 || deepest == nil {
			deepest = &diagnose.CPUIdle{State: state.Name, Latency: state.Latency, Entered: entered}
		}
	}
	return deepest
}

// look reads the states of a CPU, once in a window.
func (s *idleStates) look(cpu uint32, now uint64) idleReading {
	last, ok := s.cpus[cpu]
	if ok && last.at == now {
		return last
	}
	states, err := s.read(cpu)
	if err != nil {
		states = nil
	}
	next := idleReading{at: now, states: states}
	if ok && now-last.at < uint64(idleStateAge) {
		next.before = last.states
	}
	if s.cpus == nil || len(s.cpus) >= maxIdleCPUs {
		s.cpus = map[uint32]idleReading{}
	}
	s.cpus[cpu] = next
	return next
}
