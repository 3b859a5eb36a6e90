// Package suite is the lab's tests. They run in the guest, as root, on a kernel
// with two soft-RoCE devices, against the built collector.
package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/report"
)

// Test is one test. Run returns what it measured, in a sentence.
type Test struct {
	Name string
	Run  func(context.Context, *Guest) (string, error)
}

// skipError says why a kernel cannot run a test. The documents have to say so too.
type skipError string

func (e skipError) Error() string { return string(e) }

// testTimeout bounds one test. The longest, that of rights, takes about a minute and
// a half where no other guest runs.
const testTimeout = 6 * time.Minute

// All returns every test in the order of running. They share collectors where
// they can, see collector, and those that end one stand before those that start one;
// each can run alone.
func All() []Test {
	tests := []Test{{"sites are reached under traffic", sitesAreReached}}
	tests = append(tests, dataPathTests(modes()[0])...)
	tests = append(tests, controlTests()...)
	tests = append(tests,
		Test{"drivers of hardware are probed", driversAreProbed},
		Test{"drivers are found by their devices", driversAreFound},
		Test{"kinds of requests have their peer", kindsHavePeers},
		Test{"interrupts are watched while something is slow", interruptsAreWatched},
		Test{"queues from before the collector carry the kernel's numbers", earlierQueuesAreNamed},
		Test{"starved poller is told from slow device", starvedPoller},
		Test{"port counters are the driver's", portCounters},
		Test{"resources are listed", resourcesAreListed},
		Test{"NVMe over Fabrics is seen", nvmeIsSeen},
		Test{"NFS over RDMA is seen", nfsIsSeen},
		Test{"iSER is seen", iserIsSeen},
		Test{"fatal queue pair is told", fatalQPIsTold},
		Test{"memory registrations are counted", registrationsAreCounted},
		Test{"registered memory of ib_send_bw is the kernel's", registeredIsTheKernels},
		Test{"rping is seen", rpingIsSeen},
		Test{"ibv_rc_pingpong is seen", pingpongIsSeen},
		Test{"extended verbs are seen", extendedIsSeen},
		Test{"ibv_rc_pingpong with ibv_qp_ex is seen", newPostSendIsSeen},
		Test{"equal numbers on two devices stay apart", equalNumbersStayApart},
		Test{"one library through two overlays is counted once", overlaysAreCountedOnce},
		Test{"short-lived client is named", shortLivedIsNamed},
		Test{"delay of 50 ms is seen", delayIsSeen},
		Test{"loss is seen", lossIsSeen},
		Test{"client killed", clientKilled},
		Test{"server killed", serverKilled},
		Test{"collector killed", collectorKilled},
		// The first starts a collector under running clients of both kinds, the last
		// uses it up.
		Test{"clients running before the collector", clientsBefore},
		Test{"statically linked client running before the collector", linkedIsSeen},
		Test{"collector stopped", collectorStopped},
		Test{"without a right or type information what can be seen is", doesWhatItCan},
		Test{"throughput of ib_write_bw", throughput},
		Test{"cost of tracing kernel verbs", kernelVerbsCost},
	)
	for _, m := range modes()[1:] {
		tests = append(tests, dataPathTests(m)...)
	}
	return append(tests, Test{"SMC is seen", smcIsSeen}, Test{"RDS is seen", rdsIsSeen})
}

// Names returns the names of tests.
func Names(tests []Test) []string {
	var names []string
	for _, t := range tests {
		names = append(names, t.Name)
	}
	return names
}

// RunAll runs the tests whose names match and appends their events to the
// file. It fails only when the guest cannot be used or the file not be written.
func RunAll(ctx context.Context, g *Guest, tests []Test, match *regexp.Regexp, events *os.File) error {
	for _, t := range tests {
		if !match.MatchString(t.Name) {
			continue
		}
		if err := report.Append(events, report.Event{Started: t.Name}); err != nil {
			return err
		}
		begin := time.Now()
		fmt.Printf("--- %s\n", t.Name)
		result := runOne(ctx, g, t)
		result.Seconds = float64(time.Since(begin).Milliseconds()) / 1000
		fmt.Printf("    %s in %.1f s: %s\n", result.Result, result.Seconds, result.Why)
		if err := report.Append(events, report.Event{Test: &result}); err != nil {
			return err
		}
	}
	for _, measured := range g.throughput {
		if err := report.Append(events, report.Event{Throughput: &measured}); err != nil {
			return err
		}
	}
	for _, measured := range g.kernelVerbs {
		if err := report.Append(events, report.Event{KernelVerbs: &measured}); err != nil {
			return err
		}
	}
	return nil
}

// runOne runs a test in a directory of its own and, whatever it says, holds
// the guest to leaving nothing behind.
func runOne(ctx context.Context, g *Guest, t Test) report.Test {
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	why, err := recovered(ctx, g, t)
	result := report.Test{Name: t.Name, Result: report.Pass, Why: why, Mode: g.modeNow(ctx)}
	var skip skipError
	if errors.As(err, &skip) {
		result.Result, result.Why, err = report.Skip, skip.Error(), nil
	}
	if err := errors.Join(err, g.tidy()); err != nil {
		result.Result, result.Why = report.Fail, err.Error()
	}
	return result
}

func recovered(ctx context.Context, g *Guest, t Test) (why string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the test panicked: %v", p)
		}
	}()
	if err := g.begin(t.Name); err != nil {
		return "", err
	}
	return t.Run(ctx, g)
}
