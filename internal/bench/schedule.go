package main

import (
	"fmt"
	"strconv"
	"time"
)

const (
	defaultSeconds = 500
	minSeconds     = 60
	maxSeconds     = 540

	// minRounds of every mode are measured however short the time is: a median
	// of fewer says little.
	minRounds = 3
	// agentRepeats is how often each load of the agent is measured, pageRepeats each
	// state of the page.
	agentRepeats = 3
	pageRepeats  = 2
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
	// agent is how the agent is watched at each load, page with each state of the page.
	agent, page watching
}

// watching says how a process is watched in some situations in turn.
type watching struct {
	situations int
	// window is how long it is watched in one, repeats how often in each.
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

// divide gives the agent three fifths, the modes one and the page most of what is left;
// starts, and the memory of queues, take what they take besides.
func divide(total time.Duration) schedule {
	return schedule{
		probes: total / 5,
		cell:   60 * time.Millisecond,
		agent:  watchWithin(total*3/5, len(agentLoads), agentRepeats),
		page:   watchWithin(total*3/20, len(pageStates), pageRepeats),
	}
}

// watchWithin repeats less often, and then watches for less, where the time is short.
func watchWithin(share time.Duration, situations, repeats int) watching {
	w := watching{situations, collectionInterval, repeats}
	for w.repeats > 1 && w.time() > share {
		w.repeats--
	}
	if w.time() > share {
		w.window = share/time.Duration(situations) - agentWarmUp
	}
	return w
}

// time is how long all of it takes.
func (w watching) time() time.Duration {
	return time.Duration(w.repeats*w.situations) * (w.window + agentWarmUp)
}
