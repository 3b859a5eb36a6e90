package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
	"github.com/rdmaradar/rdmaradar/internal/launch"
)

// rxeScenario is something that goes wrong between two soft-RoCE devices, or does not.
// Verdicts on the device of the client count.
type rxeScenario struct {
	scenario
	// peer are causes that are right of the device of the server: what goes wrong at
	// one end looks different at the other.
	peer []string
	// client and server are the options of the two ends, see internal/lab/pair.
	client, server []string
	// before is put before the command of the client, nil for beforeOthers.
	before []string
	// path is the netem discipline before it goes wrong, "" for that of a short wire.
	path string
	// far is true when the device of the client is on another NUMA node than its threads.
	far bool
	// spoil lets it go wrong. The function that it returns undoes it.
	spoil func(ctx context.Context, p *pair) (undo func() error, err error)
}

// pair are the two ends of a connection.
type pair struct {
	client, server *launch.Child
	wire           wire.Wire
	// programs is the directory of what is run beside them.
	programs string
}

// What is injected makes requests slow for hundreds of milliseconds: the emulated
// processor may hold them up for tens, and the collector's threshold is above that.

// rxeScenarios are those that soft-RoCE can bring about.
func rxeScenarios() []rxeScenario {
	return []rxeScenario{
		{
			scenario: scenario{name: "rxe healthy", names: []string{nothing}},
			client:   []string{"-k", "ping"},
		},
		{
			scenario: scenario{name: "netem delay", names: []string{"network_delay"}},
			peer:     []string{"network_delay"},
			client:   []string{"-k", "ping"},
			spoil:    impair("delay 400ms"),
		},
		{
			// The far node makes nothing slow where memory is emulated. That it is far is
			// said beside what does.
			scenario: scenario{name: "NUMA mismatch", names: []string{"network_delay"}, says: "the NIC is on node 1"},
			peer:     []string{"network_delay"},
			client:   []string{"-k", "ping"},
			far:      true,
			spoil:    impair("delay 400ms"),
		},
		{
			// Code 17 is 537 ms, of which soft-RoCE waits for the rest.
			scenario: scenario{name: "netem loss", names: []string{"packet_loss"}},
			peer:     []string{"packet_loss"},
			client:   []string{"-k", "ping", "-t", "17"},
			server:   []string{"-k", "ping", "-t", "17"},
			spoil:    impair("loss 10%"),
		},
		{
			scenario: scenario{name: "receiver not ready", names: []string{"receiver_not_ready"}, says: "times 655 ms, the min_rnr_timer"},
			// Code 0 is 655.36 ms, of which the kernel's timers make a little more.
			client: []string{"-k", "send", "-m", "0", "-t", "20"},
			server: []string{"-k", "send", "-m", "0", "-l", "560"},
			spoil:  signalServer,
		},
		{
			scenario: scenario{name: "link down and up", names: []string{"link_down"}},
			// What was in the wire is lost, and not sent again for half a minute: there is
			// a request that tells, and soft-RoCE gives up at once when it cannot send.
			client: []string{"-k", "write", "-i", "0", "-t", "23"},
			path:   "delay 10ms",
			spoil:  flap,
		},
		{
			// 64 KiB take more than 400 ms.
			scenario: scenario{name: "rate limit", names: []string{"network_delay"}},
			client:   []string{"-k", "write", "-b", "65536", "-i", "50000"},
			spoil:    impair("rate 1300kbit"),
		},
		{
			// The stopped server has no more receives posted: its kernel says so.
			scenario: scenario{name: "receiver stopped", names: []string{"receiver_not_ready"}},
			peer:     []string{"poller_stopped"},
			client:   []string{"-k", "send"},
			server:   []string{"-k", "send", "-m", "30"},
			spoil:    stopServer,
		},
		{
			// It has, but does not answer.
			scenario: scenario{name: "peer stopped", names: []string{"peer_late"}, lead: turns},
			peer:     []string{"poller_stopped"},
			client:   []string{"-k", "ping"},
			spoil:    stopServer,
		},
		{
			scenario: scenario{name: "peer late", names: []string{"peer_late"}, lead: turns},
			peer:     []string{"application_late"},
			client:   []string{"-k", "ping"},
			server:   []string{"-k", "ping", "-a", "8000"},
			spoil:    signalServer,
		},
		{
			// It rests between two storms: with the only processor it would keep the
			// collector from its work. A registration of more memory would stop all else.
			scenario: scenario{name: "registration storm", names: []string{"memory_registration"}},
			client:   []string{"-k", "write", "-r", strconv.Itoa(64 << 20), "-n", "400", "-i", "300000"},
			before:   besideKernel,
			spoil:    signalClient,
		},
		{
			scenario: scenario{name: "rxe poller throttled", names: []string{"poller_throttled"}, crowded: true},
			client:   []string{"-k", "write", "-p", "-i", "0"},
			before:   afterKernel,
			spoil:    throttleClient,
		},
		{
			scenario: scenario{name: "rxe poller preempted", names: []string{"poller_preempted"}, crowded: true},
			client:   []string{"-k", "write", "-p", "-i", "0"},
			before:   afterKernel,
			spoil:    hogClient,
		},
	}
}

// beforeOthers is put before the commands of both ends: with a processor to themselves they
// would not wait for others.
var beforeOthers = []string{"nice", "-n", "-15"}

// afterKernel is what is put there of a client that polls all the time: with the only
// processor it has to leave room for the threads of the kernel that do the work of
// soft-RoCE.
var afterKernel = []string{"nice", "-n", "10"}

// besideKernel is what is put there of one that works without a rest for a while: the
// kernel's threads take turns with it.
var besideKernel = []string{"nice", "-n", "0"}

// impair changes the wire.
func impair(netem string) func(context.Context, *pair) (func() error, error) {
	return func(ctx context.Context, p *pair) (func() error, error) { return nil, p.wire.Impair(ctx, netem) }
}

// turns is for how long two ends take turns before one is late: that means something
// of those that did so for a while.
const turns = 24 * time.Second

// signalServer and signalClient tell one end to do what it does wrong.
func signalServer(_ context.Context, p *pair) (func() error, error) {
	return nil, syscall.Kill(p.server.PID, syscall.SIGUSR1)
}

func signalClient(_ context.Context, p *pair) (func() error, error) {
	return nil, syscall.Kill(p.client.PID, syscall.SIGUSR1)
}

// stopServer stops the process of the server.
func stopServer(_ context.Context, p *pair) (func() error, error) {
	undo := func() error { return syscall.Kill(p.server.PID, syscall.SIGCONT) }
	return undo, syscall.Kill(p.server.PID, syscall.SIGSTOP)
}

// cgroups is where the kernel's cgroups are, of version 2 in the guest.
const cgroups = "/sys/fs/cgroup"

// throttleClient puts the client into a cgroup that may use a third of each second, and
// takes it out again.
func throttleClient(_ context.Context, p *pair) (func() error, error) {
	if err := os.WriteFile(filepath.Join(cgroups, "cgroup.subtree_control"), []byte("+cpu"), 0o644); err != nil {
		return nil, err
	}
	group := &quota{path: filepath.Join(cgroups, "verdicts-"+strconv.Itoa(p.client.PID))}
	if err := group.make(map[string]string{"cpu.max": "300000 1000000"}, p.client.PID); err != nil {
		return nil, err
	}
	return func() error {
		err := os.WriteFile(filepath.Join(cgroups, "cgroup.procs"), []byte(strconv.Itoa(p.client.PID)), 0o644)
		return errors.Join(err, group.remove())
	}, nil
}

// hogClient runs a program beside the client that takes the only processor for 400 ms
// again and again.
func hogClient(ctx context.Context, p *pair) (func() error, error) {
	return runBeside(ctx, "hog.log", "nice", "-n", "-5", filepath.Join(p.programs, "hog"), "400", "400")
}

// outage is how long the link is down.
const outage = 300 * time.Millisecond

// flap takes the link down and up again, at the end of the server: the port of the client
// is down with it.
func flap(ctx context.Context, p *pair) (func() error, error) {
	if err := wire.SetInterface(p.wire.ServerNetdev, false); err != nil {
		return nil, err
	}
	err := launch.Sleep(ctx, outage)
	return nil, errors.Join(err, p.wire.Restore(context.WithoutCancel(ctx)))
}

// peerDevice is the name of the device of the server.
func (s *rxeScenario) peerDevice() string { return s.device() + "_peer" }

// wronglySaid are the verdicts on the device of the server that are wrong.
func (s *rxeScenario) wronglySaid(of []record) []record {
	return slices.DeleteFunc(slices.Clone(of), func(r record) bool { return slices.Contains(s.peer, r.cause) })
}
