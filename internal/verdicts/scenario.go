package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

// nothing is what a scenario has named when no incident was opened.
const nothing = "nothing"

// quiet is how long a workload runs before anything is wrong: long enough for its
// queues to be in step.
const quiet = 1200 * time.Millisecond

// healthy is for how long sizes, depths and rates of sound traffic vary: until each
// pairing has come, and for long enough that a process is missed when it stops.
const healthy = 12200 * time.Millisecond

// scenario is something that goes wrong, or does not.
type scenario struct {
	name string
	// names are the causes that say it right; nothing where there must be no
	// incident.
	names []string
	// says is what the first verdict has to say as well, "" for nothing.
	says string
	// simulation and flags are those of bin/verbsim.
	simulation string
	flags      []string
	// lead is how long nothing is wrong; 0 for quiet.
	lead time.Duration
	// meddle is what is done to the workload after that, nil where it goes wrong by
	// itself. The function that it returns undoes it.
	meddle func(ctx context.Context, workload *launch.Child) (undo func() error, err error)
	// crowded is true when that takes the processor away from the workload.
	crowded bool
	// hidden is true when the rate of the device is not to be known.
	hidden bool
	// before is what the time until then is called, if it is a scenario of its own:
	// one that must open no incident.
	before string
}

// underWay are the flags of a workload that has a request under way for most of the
// time: one is hit by what happens to its thread.
var underWay = []string{"--rate", "1730", "--latency-us", "400"}

// scenarios are those that this host can bring about.
func scenarios() []scenario {
	return []scenario{
		{
			name: "saturated port", names: []string{nothing},
			simulation: "nccl-saturated",
		},
		{
			name: "Send Queue full", names: []string{"send_queue_full"},
			simulation: "enomem", flags: []string{"--rate-gbps", "10"}, hidden: true,
		},
		{
			name: "unsignaled run", names: []string{"send_queue_backlog"},
			simulation: "unsignaled", flags: []string{"--rate-gbps", "10"}, hidden: true,
		},
		{
			name: "slow device", names: []string{"network_delay"},
			simulation: "slow-device", flags: []string{"--latency-us", "2000"},
		},
		{
			name: "poller busy", names: []string{"poller_busy"},
			simulation: "busy-poller", flags: []string{"--late-us", "2000"},
		},
		{
			name: "poller asleep", names: []string{"poller_asleep"},
			simulation: "perftest-lat", flags: []string{"--rate", "200", "--latency-us", "100", "--nap-us", "3000"},
		},
		{
			name: "CQ starved", names: []string{"completion_queue_starved"},
			simulation: "starved-cq", flags: []string{"--late-us", "2000"},
		},
		{
			name: "post stalled", names: []string{"post_stalled"},
			simulation: "stalled-post", flags: []string{"--late-us", "2000"},
		},
		{
			name: "poller preempted", names: []string{"poller_preempted"},
			simulation: "perftest-lat", flags: underWay, meddle: hog, crowded: true,
		},
		{
			name: "poller throttled", names: []string{"poller_throttled"},
			// A thread that sleeps is held back when it wakes, with nothing under way.
			simulation: "perftest-lat", flags: []string{"--rate", "0", "--latency-us", "400"}, meddle: throttle, crowded: true,
		},
		{
			name: "poller stopped", names: []string{"poller_stopped"},
			simulation: "perftest-lat", flags: underWay, meddle: interrupt,
		},
		{
			name: "hang", names: []string{"hang"},
			simulation: "hang",
		},
		{
			name: "application late", names: []string{"application_late"},
			simulation: "varied", flags: []string{"--pause-at-ms", milliseconds(healthy), "--pause-ms", "15000"},
			lead: healthy, before: "healthy traffic",
		},
	}
}

// device is the name of the simulated device of a scenario: by it the verdicts are
// told apart.
func (s *scenario) device() string {
	return "v_" + strings.ToLower(strings.Join(strings.Fields(s.name), ""))
}

// quiet is how long nothing is wrong.
func (s *scenario) quiet() time.Duration { return cmp.Or(s.lead, quiet) }

// sees reports whether a verdict is a right one.
func (s *scenario) sees(cause string) bool { return slices.Contains(s.names, cause) }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
