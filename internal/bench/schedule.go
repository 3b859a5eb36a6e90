package main

import (
	"fmt"
	"strconv"
	"time"
)

const (
	defaultSeconds = 460
	minSeconds     = 60
	maxSeconds     = 540

	// minRounds of every mode are measured however short the time is: a median
	// of fewer says little.
	minRounds = 3
	// agentRepeats is how often each load of the agent is measured.
	agentRepeats = 3
	// collectionInterval is the receiver's default: a window that is not a
	// multiple of it has an unfair share of collections.
	collectionInterval = 10 * time.Second
	// agentWarmUp lets queues be seen and memory settle before each window.
	agentWarmUp = time.Second
)

// schedule says how the time is spent.
type schedule struct {
	// probes is for the modes side by side; rounds end when it is over.
	probes time.Duration
	// cell is how long one number is measured in one round.
	cell time.Duration
	// window is how long the agent is watched at one load, repeats how often.
	window  time.Duration
	repeats int
}

// scheduleFrom reads BENCH_SECONDS.
func scheduleFrom(text string) (schedule, error) {
	seconds := defaultSeconds
	if text != "" {
		var err error
		seconds, err = strconv.Atoi(text)
		if err != nil || seconds < minSeconds || seconds > maxSeconds {
			return schedule{}, fmt.Errorf("BENCH_SECONDS is %q: give whole seconds from %d to %d", text, minSeconds, maxSeconds)
		}
	}
	return divide(time.Duration(seconds) * time.Second), nil
}

// divide gives the agent two thirds and the modes a quarter; what is left is for
// the memory of queues, which takes what it takes.
func divide(total time.Duration) schedule {
	s := schedule{probes: total / 4, cell: 60 * time.Millisecond, window: collectionInterval, repeats: agentRepeats}
	forAgent := total * 2 / 3
	for s.repeats > 1 && s.agentTime() > forAgent {
		s.repeats--
	}
	if s.agentTime() > forAgent {
		s.window = forAgent/time.Duration(len(agentLoads)) - agentWarmUp
	}
	return s
}

func (s schedule) agentTime() time.Duration {
	return time.Duration(s.repeats*len(agentLoads)) * (s.window + agentWarmUp)
}
