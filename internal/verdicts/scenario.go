package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

// nothing is what a scenario has named when no incident was opened.
const nothing = "nothing"

// quiet is how long a workload runs before anything is wrong: long enough for its
// queues to be in step.
const quiet = 2 * time.Second

// settling is how long a workload waits before it posts: its device has come up with
// it, and what the port carries has to be known, as it is on a host by then.
const settling = 2500 * time.Millisecond

// scenario is something that goes wrong, or does not.
type scenario struct {
	name string
	// names are the causes that say it right; nothing where there must be no
	// incident.
	names []string
	// simulation and flags are those of bin/verbsim.
	simulation string
	flags      []string
	// lead is how long nothing is wrong; 0 for quiet.
	lead time.Duration
	// meddle is what is done to the workload after that, nil where it goes wrong by
	// itself. The function that it returns undoes it.
	meddle func(ctx context.Context, workload *launch.Child) (undo func() error, err error)
	// hidden is true when the rate of the device is not to be known.
	hidden bool
}

// underWay are the flags of a workload that has a request under way for most of the
// time: one is hit by what happens to its thread.
var underWay = []string{"--rate", "2000", "--latency-us", "300"}

// scenarios are those that this host can bring about.
func scenarios() []scenario {
	return []scenario{
		{
			name: "healthy", names: []string{nothing},
			simulation: "nccl", flags: []string{"--spikes-per-second", "0", "--rate", "1000"},
		},
		{
			name: "saturated port", names: []string{nothing},
			simulation: "nccl-saturated",
		},
		{
			name: "Send Queue full", names: []string{"send_queue_full"},
			simulation: "enomem", flags: []string{"--rate-gbps", "10"}, hidden: true,
		},
		{
			name: "slow device", names: []string{"network_delay", "unknown"},
			simulation: "slow-device", flags: []string{"--latency-us", "2000"},
		},
		{
			name: "poller busy", names: []string{"poller_busy"},
			simulation: "busy-poller", flags: []string{"--late-us", "2000"},
		},
		{
			name: "CQ starved", names: []string{"completion_queue_starved"},
			simulation: "starved-cq", flags: []string{"--late-us", "2000"},
		},
		{
			name: "poller preempted", names: []string{"poller_preempted"},
			simulation: "perftest-lat", flags: underWay, meddle: hog,
		},
		{
			name: "poller throttled", names: []string{"poller_throttled"},
			simulation: "perftest-lat", flags: underWay, meddle: throttle,
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
			simulation: "perftest-lat", lead: 13 * time.Second,
			flags: []string{"--rate", "1000", "--pause-after", "13000", "--pause-ms", "8000"},
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

// start runs the workload of the scenario.
func (s *scenario) start(ctx context.Context, out, root string) (*launch.Child, error) {
	length := settling + s.quiet() + patience + 5*time.Second
	// Its thread goes before the rest of this machine, as one that has a processor
	// to itself would.
	arguments := append([]string{
		"-n", "-15", workloadPath, s.simulation, "--device", s.device(),
		"--seconds", strconv.FormatFloat(length.Seconds(), 'f', 1, 64),
		"--start-delay-ms", strconv.FormatInt(settling.Milliseconds(), 10),
		"--warmup-quiet-ms", strconv.FormatInt(quiet.Milliseconds(), 10),
	}, s.flags...)
	if !s.hidden {
		arguments = append(arguments, "--sysroot", root)
	}
	return launch.Start(ctx, filepath.Join(out, s.device()+".log"), "nice", arguments...)
}

// hog runs a busy program on the processor of the workload, and keeps the workload
// there.
func hog(ctx context.Context, workload *launch.Child) (func() error, error) {
	var one unix.CPUSet
	one.Set(0)
	if err := setAffinity(workload.PID, &one); err != nil {
		return nil, err
	}
	busy, err := launch.Start(ctx, filepath.Join(outDirectory, "hog.log"), "nice", "-n", "-15", "taskset", "-c", "0", "sh", "-c", "while :; do :; done")
	if err != nil {
		return nil, err
	}
	return func() error {
		busy.Stop()
		_ = busy.Wait() // It ends by a signal.
		return nil
	}, nil
}

// setAffinity keeps all threads of a process on some processors.
func setAffinity(pid int, cpus *unix.CPUSet) error {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, cpus); err != nil {
			return fmt.Errorf("keep thread %d on a processor: %w", tid, err)
		}
	}
	return nil
}

// interrupt stops the workload for 20 ms, five times a second.
func interrupt(ctx context.Context, workload *launch.Child) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- stopAgain(ctx, workload.PID) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}

func stopAgain(ctx context.Context, pid int) error {
	for {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
		if err := unix.Kill(pid, unix.SIGCONT); err != nil {
			return err
		}
		if launch.Sleep(ctx, 180*time.Millisecond) != nil {
			return nil
		}
	}
}

// throttle puts the workload into a cgroup that may use a third of a processor.
func throttle(_ context.Context, workload *launch.Child) (func() error, error) {
	group, err := newQuota(workload.PID)
	if err != nil {
		return nil, err
	}
	return group.remove, nil
}

// checkTools names the programs that are missing.
func checkTools() error {
	_, err := exec.LookPath("taskset")
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("taskset is not installed: apt-get install util-linux")
	}
	return err
}
