//go:build e2e

package tracer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// stageShares is how the durations of the pairs are divided.
func stageShares(pairs []pair) map[string]float64 {
	var total time.Duration
	var sums [verbs.NumStages]time.Duration
	for _, p := range pairs {
		total += p.seen.Duration()
		for i, stage := range p.seen.Stages {
			sums[i] += stage
		}
	}
	shares := map[string]float64{}
	for i, sum := range sums {
		shares[verbs.Stage(i).String()] = float64(sum) / float64(max(total, 1))
	}
	return shares
}

// lateShare is how much of the time completions truly waited for the poller.
func lateShare(pairs []pair) float64 {
	var total, late time.Duration
	for _, p := range pairs {
		total += p.seen.Duration()
		late += p.late()
	}
	return float64(late) / float64(max(total, 1))
}

// A thread that polls late is told from a device that is slow: the first one's
// time is in the stage poll, the other's in the stage device.
func TestLatePollerIsToldFromSlowDevice(t *testing.T) {
	t.Parallel()
	for scenario, stage := range map[string]string{"late-poller": "poll", "slow-device": "device"} {
		t.Run(scenario, func(t *testing.T) {
			beside(t)
			cfg := everything
			cfg.EntryReturn = true // All stages are known then.
			tr := startTracer(t, cfg)
			r := simulate(t, tr, scenario, "--seconds", "1.2")
			pairs := r.checkPairs()
			shares := stageShares(pairs)
			late := lateShare(pairs)
			t.Logf("shares of the stages: %v; %.2f of the time the completion waited for the poller", shares, late)
			// What this machine itself was late is not the device's. When the thread that
			// posts is held up, what it posts then waits behind what the device has.
			share := shares[stage]
			if stage == "device" {
				share += shares["queue"]
			}
			if stage == "device" && (share < 0.8-2*late || shares["poll"] > 0.1+2*late) || stage == "poll" && share < 0.6 {
				t.Errorf("the stage %s has %.0f%% of the time", stage, 100*share)
			}
		})
	}
}

// A tracer that has begun has lost nothing yet: what it tried on its own child
// does not count.
func TestNothingIsLostAtTheStart(t *testing.T) {
	beside(t)
	for reason, n := range snapshot(t, startTracer(t, everything)).Losses {
		if n != 0 {
			t.Errorf("%d %s", n, reason)
		}
	}
}

// Sixteen queues that share a saturated port take long, and none is slow: the
// port was busy. What is reported all the same was late on this machine, and
// the truth says so.
func TestSaturatedPortIsNotSlow(t *testing.T) {
	beside(t)
	const rate = 100e9 / 8
	tr := startTracer(t, tracer.Config{
		Threshold: 50 * time.Microsecond,
		Rate:      func(string) (float64, bool) { return rate, true },
	})
	collected := collect(tr)
	learnRate(t, tr, collected)
	r := followWith(t, tr, collected, "nccl-saturated", "--seconds", "1.5", "--rate-gbps", "100")
	r.checkBooks()
	right, wrong := r.pairs()
	for _, problem := range wrong {
		t.Errorf("wrong pair: %s", problem)
	}
	blamed := 0
	for _, p := range right {
		// The device has the request once post_send returns at the latest.
		lateBy := time.Duration(p.truth.PollAfter-p.truth.Due) + time.Duration(p.truth.PostAfter-p.truth.PostBefore)
		if p.truth.Due == 0 || p.seen.Excess() > lateBy+p.seen.Threshold {
			blamed++
			t.Errorf("qp %#x: %v, busy %v, excess %v, but posting took, and polling was late by, %v",
				p.seen.Queue.QPNumber, p.seen.Duration(), p.seen.Busy, p.seen.Excess(), lateBy)
		}
	}
	durations := time.Duration(0)
	timed := uint64(0)
	r.series(func(s *verbs.Series) { durations += s.Sum; timed += s.Timed })
	t.Logf("%d timed, %v on average, %d reported as slow, %d of them wrongly", timed, durations/time.Duration(max(timed, 1)), len(right), blamed)
	if timed == 0 || durations/time.Duration(timed) < time.Millisecond {
		t.Error("the port was not saturated: this says nothing")
	}
}

// learnRate has the tracer ask for the rate of the device: while that is not known, as
// for a moment after a device turns up, every request that takes long is slow.
func learnRate(t *testing.T, tr *tracer.Tracer, collected *collector) {
	t.Helper()
	const device = "sim0"
	r := &run{t: t, collected: collected}
	w := startWorkload(t, "perftest-lat", "--rate", "1000", "--device", device, "--seconds", "60")
	w.waitReady()
	w.release()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		known, err := tracer.KnowsRate(tr, device)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the rate of %s is not known: %v", device, err)
		}
		if known {
			break
		}
	}
	w.stop()
	r.finish(tr, w)
}

// A request during which a port was busy for hours is not slow: 512 GiB at 2^35 ns
// for each are 4.9 hours, 2^44 ns, at which shorter arithmetic begins anew at 0.
func TestBusyForHoursIsNotSlow(t *testing.T) {
	beside(t)
	const rate = 31.25e6
	tr := startTracer(t, tracer.Config{
		Threshold: 50 * time.Microsecond,
		Rate:      func(string) (float64, bool) { return rate, true },
	})
	collected := collect(tr)
	learnRate(t, tr, collected)
	before := len(collected.told())
	r := followWith(t, tr, collected, "rate", "--requests", "4000", "--seconds", "20", "--qps", "1", "--rate", "0",
		"--rate-gbps", "0", "--size", "1073741824", "--depth", "512", "--latency-us", "20000")
	r.checkBooks()
	if slow := r.seen[before:]; len(slow) > 0 {
		t.Errorf("%d of %d were slow, the first took %v and the port was busy for %v",
			len(slow), r.matched(), slow[0].Duration(), slow[0].Busy)
	}
	if r.matched() < 2000 {
		t.Errorf("only %d were timed: this says nothing", r.matched())
	}
}

// A request that never completes is reported once, within five seconds.
func TestHangIsReportedOnce(t *testing.T) {
	beside(t)
	tr := startTracer(t, tracer.Config{Threshold: 50 * time.Microsecond})
	collected := collect(tr)
	w := startWorkload(t, "hang", "--seconds", "6")
	w.waitReady()
	w.release()
	released := time.Now()
	var oldest time.Duration
	for time.Since(released) < 5500*time.Millisecond {
		time.Sleep(500 * time.Millisecond)
		for _, q := range snapshot(t, tr).Queues {
			oldest = max(oldest, q.Oldest)
		}
	}
	truth, _ := w.wait()
	collected.mu.Lock()
	defer collected.mu.Unlock()
	if len(collected.stuck) != 1 {
		t.Fatalf("%d reports of stuck requests, want 1", len(collected.stuck))
	}
	stuck := collected.stuck[0]
	if int(stuck.Queue.Process.TGID) != truth.PID || stuck.Age < time.Second || stuck.Device != "sim0" {
		t.Errorf("reported: %+v", stuck)
	}
	if oldest < 3*time.Second {
		t.Errorf("the oldest outstanding request was %v old", oldest)
	}
	if truth.Counts.Outstanding == 0 {
		t.Error("nothing hung")
	}
}

// The default bound on memory holds, by the kernel's own count.
func TestMapMemory(t *testing.T) {
	beside(t)
	tr := startTracer(t, tracer.Config{})
	if got := tr.MapBytes(); got == 0 || got > 32<<20 {
		t.Errorf("the maps take %d KiB", got>>10)
	} else {
		t.Logf("the maps take %.1f MiB", float64(got)/(1<<20))
	}
	// The bound is divided by what maps are expected to take.
	sizes, err := tracer.MapSizes(tr)
	if err != nil || len(sizes) < 20 {
		t.Fatalf("%d sizes, %v", len(sizes), err)
	}
	for name, size := range sizes {
		if size.Told > size.Estimated {
			t.Errorf("%s takes %d bytes, expected at most %d", name, size.Told, size.Estimated)
		}
	}
}

// More queues than there are slots: the rest is untracked, and counted.
func TestTooManyQueues(t *testing.T) {
	beside(t)
	const queues, slots = 4200, 4096
	tr := startTracer(t, tracer.Config{Threshold: time.Hour})
	r := &run{t: t, collected: collect(tr), before: snapshot(t, tr)}
	w := startWorkload(t, "rate", "--qps", strconv.Itoa(queues), "--seconds", "1.5")
	w.waitReady()
	ready := snapshot(t, tr)
	w.release()
	r.truth, r.records = w.wait()
	time.Sleep(200 * time.Millisecond)
	r.after = snapshot(t, tr)
	r.checkBooks()
	r.checkCounts()
	if len(ready.Queues) != slots || ready.UntrackedQueues != queues-slots {
		t.Errorf("of %d queues %d are tracked and %d counted as untracked", queues, len(ready.Queues), ready.UntrackedQueues)
	}
	t.Logf("%d requests lost on untracked queues, %d timed", r.lost("untracked_queue"), r.matched())
}

// Probes come and go under load; the workload's own checks hold.
func TestAttachAndDetachUnderLoad(t *testing.T) {
	beside(t)
	w := startWorkload(t, "nccl", "--seconds", "50")
	w.waitReady()
	w.release()
	for i := range 3 {
		cfg := everything
		tr, err := tracer.Start(t.Context(), tracer.OnlyFilesUnder(cfg, homeOf(t).dir))
		if err != nil {
			t.Fatal(err)
		}
		collect(tr)
		time.Sleep(300 * time.Millisecond)
		s := snapshot(t, tr)
		if n := s.Completions.Seen; n == 0 {
			t.Errorf("round %d: no completion seen", i)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		if err := tr.Close(); err != nil {
			t.Errorf("closing twice: %v", err)
		}
	}
	w.stop()
	w.wait()
}

// helperVariable names the directory whose libraries the tracer that is killed
// probes. The kernel lets go of the probes of a killed process one after the other:
// those on all that are installed take it 10 s.
const helperVariable = "RDMARADAR_TEST_TRACER_HELPER"

// TestHelperTracer is the tracer that another test kills.
func TestHelperTracer(t *testing.T) {
	if os.Getenv(helperVariable) == "" {
		t.Skip("runs only as a child of TestKilledTracerLeavesNothing")
	}
	tr, err := tracer.Start(t.Context(), tracer.OnlyFilesUnder(tracer.Config{}, os.Getenv(helperVariable)))
	if err != nil {
		t.Fatal(err)
	}
	collect(tr)
	fmt.Println("tracing")
	time.Sleep(time.Minute)
}

// A tracer that is killed leaves no program behind, and the workload goes on.
func TestKilledTracerLeavesNothing(t *testing.T) {
	beside(t)
	w := startWorkload(t, "nccl", "--seconds", "4")
	w.waitReady()
	w.release()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHelperTracer$", "-test.v")
	child.Env = append(os.Environ(), helperVariable+"="+homeOf(t).dir, "TMPDIR="+t.TempDir())
	tie(child)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	waitForLine(t, out, "tracing")
	held := programsOf(t, child.Process.Pid)
	if len(held) == 0 {
		t.Error("the tracer holds no program: this says nothing")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	for deadline := time.Now().Add(time.Minute); left(t, held) > 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	if n := left(t, held); n > 0 {
		t.Errorf("%d programs are left of %d", n, len(held))
	}
	w.wait()
}

func waitForLine(t *testing.T, out interface{ Read([]byte) (int, error) }, line string) {
	t.Helper()
	var text strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(text.String(), line) {
		n, err := out.Read(buffer)
		text.Write(buffer[:n])
		if err != nil {
			t.Fatalf("the child ended: %v\n%s", err, text.String())
		}
	}
}

// programLine is how the kernel tells which program a file descriptor is of.
var programLine = regexp.MustCompile(`(?m)^prog_id:\s*(\d+)$`)

// programsOf are the BPF programs that a process holds.
func programsOf(t *testing.T, pid int) map[ebpf.ProgramID]bool {
	t.Helper()
	infos, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	held := map[ebpf.ProgramID]bool{}
	for _, path := range infos {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // It was closed meanwhile.
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range programLine.FindAllSubmatch(text, -1) {
			id, err := strconv.ParseUint(string(match[1]), 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			held[ebpf.ProgramID(id)] = true
		}
	}
	return held
}

// left counts those of the programs that are still in the kernel.
func left(t *testing.T, programs map[ebpf.ProgramID]bool) (n int) {
	t.Helper()
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		id = next
		if programs[id] {
			n++
		}
	}
}
