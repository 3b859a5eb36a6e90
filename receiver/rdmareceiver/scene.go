package rdmareceiver

import (
	"slices"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
	"github.com/rdmaradar/rdmaradar/internal/fabric"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// scene is what went on around the bursts of one window.
type scene struct {
	// start and end are the window on CLOCK_MONOTONIC, in nanoseconds.
	start, end uint64
	glances    *glances
	quotas     *quotas
	steals     *steals
	idleStates *idleStates
	threads    threads
	scheduling func(tid uint32, since uint64) (verbs.Scheduling, bool)
	// stamped is true when devices may write time stamps.
	stamped bool
	// devices is nil where the host has no such source.
	devices  *deviceWatch
	topology topology
	// events are what devices told of late.
	events []verbs.AsyncEvent
}

// burstOf is a burst with its surroundings. It has requests of its own, which may
// be changed.
func (s *scene) burstOf(b *held) diagnose.Burst {
	burst := diagnose.Burst{
		Start: min(s.start, b.first), End: s.end,
		Slow: slices.Clone(b.slow), Stuck: slices.Clone(b.stuck),
		Stamped: s.stamped,
	}
	s.addQueues(&burst, b)
	s.addPoller(&burst, b)
	s.addProcess(&burst, counterKey{b.queue.Process, b.device})
	s.addDevice(&burst, b)
	for _, e := range s.events {
		if e.Device == b.device {
			burst.Events = append(burst.Events, e)
		}
	}
	return burst
}

// silenceOf is the silence of a process with its surroundings.
func (s *scene) silenceOf(p *idleProcess) diagnose.Burst {
	idle := p.idle
	burst := diagnose.Burst{Start: idle.Since, End: s.end, Idle: &idle}
	s.addProcess(&burst, p.key)
	burst.Poller = s.pollerOf(p.key.process, verbs.Thread{TID: s.glances.onlyPoller(p.key)}, burst.Start)
	s.addDevice(&burst, &held{device: p.key.device})
	for _, e := range s.events {
		if e.Device == p.key.device {
			burst.Events = append(burst.Events, e)
		}
	}
	return burst
}

// addQueues adds the queue pair and its neighbours.
func (s *scene) addQueues(burst *diagnose.Burst, b *held) {
	if q := s.glances.queue(b.queue); q != nil {
		burst.Queue = q
		burst.Neighbours = s.glances.neighbours(b.queue)
		burst.Baseline = s.glances.baseline(b.queue)
		burst.Completions, burst.HasCompletions = s.glances.completed(b.queue)
	}
}

// addProcess adds what is counted by process.
func (s *scene) addProcess(burst *diagnose.Burst, key counterKey) {
	grew := s.glances.grew(key, burst.Start)
	burst.Rejected, burst.Refused = grew.rejected, grew.refused
	burst.Throttling = s.quotas.took(key.process, burst.Start)
	burst.Receives = diagnose.Receives{Empty: grew.empty}
	burst.Registrations = diagnose.Registrations{Count: grew.registered, Bytes: grew.regBytes, Time: grew.regTime}
}

// addDevice adds the device and what its counters grew by.
func (s *scene) addDevice(burst *diagnose.Burst, b *held) {
	if s.devices == nil {
		return
	}
	before, after, last := s.devices.around(burst.Start, burst.End)
	burst.Counters = diagnose.NewCounters(before, after, b.device, int(b.port))
	if last == nil {
		return
	}
	for i := range last.Devices {
		if state := &last.Devices[i]; state.Name == b.device {
			burst.Device = s.deviceOf(state, b)
		}
	}
}

func (s *scene) deviceOf(state *fabric.DeviceState, b *held) *diagnose.Device {
	device := &diagnose.Device{DeviceState: *state, Nodes: func(cpu uint32) (int, bool) { return s.topology.CPUNode(int(cpu)) }}
	for i := range state.Ports {
		if state.Ports[i].Number == int(b.port) {
			device.Port = &state.Ports[i]
		}
	}
	for i := range b.slow {
		if gpu := b.slow[i].Memory.GPU; gpu != "" {
			_, device.GPU = s.topology.GPU(gpu, b.device)
			break
		}
	}
	return device
}
