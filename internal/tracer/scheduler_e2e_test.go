//go:build e2e

package tracer_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// What the scheduler did with a poller is told from what the device did.

// oneSpinner is a workload of one thread that always has a request outstanding and
// never sleeps.
var oneSpinner = []string{"--qps", "1", "--latency-us", "1000", "--rate", "900"}

func TestSchedulingOfSleepingPoller(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	r := simulate(t, tr, "late-poller", "--seconds", "1", "--late-us", "500")
	r.checkScheduling()
	asleep := r.countScheduling(func(_ *verbs.Completion, s *verbs.Scheduling) bool { return s.Asleep >= 450*time.Microsecond })
	awake := r.countScheduling(func(_ *verbs.Completion, s *verbs.Scheduling) bool { return s.Asleep == 0 })
	t.Logf("of %d completions, %d came while the poller slept, %d while it was awake", len(r.seen), asleep, awake)
	if asleep < 5 || awake < 5 {
		t.Error("a poller that sleeps one time in forty and computes as often is not seen to do both")
	}
}

func TestSchedulingOfSlowDevice(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	r := simulate(t, tr, "slow-device", append([]string{"--seconds", "1"}, oneSpinner...)...)
	r.checkScheduling()
	blamed := r.countScheduling(func(c *verbs.Completion, s *verbs.Scheduling) bool { return s.Asleep+s.Stopped > c.Duration()/2 })
	t.Logf("%d of %d completions are blamed on a thread that spins", blamed, len(r.seen))
	if blamed > len(r.seen)/10 {
		t.Error("a slow device is blamed on a thread that spins")
	}
}

func TestSchedulingBesideHog(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	collected := collect(tr)
	w := startWorkload(t, "slow-device", append([]string{"--seconds", "2"}, oneSpinner...)...)
	w.waitReady()
	hog := startHog(t)
	pinTogether(t, w.command.Process.Pid, hog)
	r := &run{t: t, collected: collected, before: snapshot(t, tr), started: time.Now()}
	w.release()
	r.finish(tr, w)
	r.checkScheduling()
	preempted, byHog := 0, 0
	r.countScheduling(func(_ *verbs.Completion, s *verbs.Scheduling) bool {
		if s.Runnable <= time.Millisecond || s.Runnable <= s.Asleep+s.Stopped {
			return false
		}
		preempted++
		if s.Instead.Name == hogName && int(s.Instead.TID) == hog {
			byHog++
		}
		return true
	})
	t.Logf("of %d completions, %d came after the poller was preempted, %d of these by the hog", len(r.seen), preempted, byHog)
	if byHog < 3 {
		t.Error("a hog on the poller's CPU is not told")
	}
}

func TestSchedulingOfStoppedPoller(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	collected := collect(tr)
	w := startWorkload(t, "slow-device", append([]string{"--seconds", "60"}, oneSpinner...)...)
	w.waitReady()
	r := &run{t: t, collected: collected, before: snapshot(t, tr), started: time.Now()}
	w.release()
	const stops, held = 6, 50 * time.Millisecond
	for range stops {
		time.Sleep(150 * time.Millisecond)
		w.signal(syscall.SIGSTOP)
		time.Sleep(held)
		w.signal(syscall.SIGCONT)
	}
	w.stop()
	r.finish(tr, w)
	r.checkScheduling()
	stopped := r.countScheduling(func(c *verbs.Completion, s *verbs.Scheduling) bool {
		return s.Stopped > c.Duration()/2 && s.Stopped > held/2
	})
	t.Logf("%d of %d completions came after the poller was stopped, which was %d times", stopped, len(r.seen), stops)
	if stopped < stops/2 {
		t.Error("a stopped poller is not told")
	}
}

// Threads that post for others to poll are told apart from these.
func TestSchedulingOfPosters(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	r := simulate(t, tr, "threads", "--seconds", "0.5", "--rate", "2000")
	r.checkScheduling()
	apart, differ := 0, 0
	for _, c := range r.seen {
		if c.Poster.TID == c.Poller.TID || !c.HasPosterScheduling {
			continue
		}
		apart++
		if c.PosterScheduling != c.PollerScheduling {
			differ++
		}
	}
	t.Logf("of %d completions, %d were posted by another thread, which fared otherwise in %d", len(r.seen), apart, differ)
	if apart < 10 || differ < 10 {
		t.Error("what the posting threads did is not told")
	}
}

// However threads end, what their schedules were kept in is free again: also when one
// that is not the first executes a program that the kernel gives up half-way.
func TestSchedulesComeBack(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	collect(tr)
	// Some are those of programs that make libraries known.
	others, all, err := tracer.Schedules(tr)
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{
		{"threads", "--seconds", "0.2"}, {"fork-exec", "--seconds", "0.4"}, {"perftest-lat", "--requests", "100", "--broken-exec"},
	} {
		w := startWorkload(t, flags[0], flags[1:]...)
		w.waitReady()
		w.release()
		if flags[0] != "perftest-lat" {
			w.wait()
		} else if _ = w.ended(); !strings.Contains(w.command.ProcessState.String(), "segmentation fault") {
			t.Errorf("a program that breaks ended by %v: %s", w.command.ProcessState, w.output.String())
		}
		if watched, free, err := tracer.Schedules(tr); err != nil || watched != others || free != all {
			t.Errorf("%v: %d threads are watched, before %d, %d of %d schedules are free, %v", flags, watched, others, free, all, err)
		}
	}
}

// countScheduling counts the completions whose poller's scheduling is so.
func (r *run) countScheduling(is func(*verbs.Completion, *verbs.Scheduling) bool) int {
	n := 0
	for i := range r.seen {
		if c := &r.seen[i]; c.HasPollerScheduling && is(c, &c.PollerScheduling) {
			n++
		}
	}
	return n
}

// checkScheduling demands of every completion that what is told adds up. On a crowded
// machine a poller may lose its CPU more often than is kept.
func (r *run) checkScheduling() {
	r.t.Helper()
	r.checkBooks()
	if len(r.seen) == 0 {
		r.t.Fatal("no completion was told")
	}
	known, whole := 0, 0
	for i := range r.seen {
		c := &r.seen[i]
		for _, s := range []*verbs.Scheduling{&c.PollerScheduling, &c.PosterScheduling} {
			away := s.OffCPU()
			if away > c.Duration() || s.Longest > away || s.Interrupted > c.Duration() ||
				(s.Switches == 0) != (away == 0) || s.Migrations > s.Switches {
				r.t.Errorf("of a request that took %v: %+v", c.Duration(), s)
			}
		}
		if c.HasPollerScheduling {
			known++
		}
		if c.PollerScheduling.Whole {
			whole++
		}
	}
	r.t.Logf("of %d completions, the scheduling of %d pollers is known, of %d as a whole", len(r.seen), known, whole)
	if whole < len(r.seen)/2 {
		r.t.Error("the scheduling of most pollers is not known as a whole")
	}
}

func (w *workload) signal(signal syscall.Signal) {
	w.t.Helper()
	if err := w.command.Process.Signal(signal); err != nil {
		w.t.Fatal(err)
	}
}

// hogName is the comm of a process that computes without end.
const hogName = "cpuhog"

func startHog(t *testing.T) (pid int) {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	hog := filepath.Join(t.TempDir(), hogName)
	if err := unix.Symlink(shell, hog); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(hog, "-c", "while :; do :; done")
	tie(command)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command.Process.Pid
}

// pinTogether leaves the processes one CPU, the first that they may use.
func pinTogether(t *testing.T, pids ...int) {
	t.Helper()
	var may, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !may.IsSet(cpu) {
		cpu++
	}
	one.Set(cpu)
	for _, pid := range pids {
		if err := unix.SchedSetaffinity(pid, &one); err != nil {
			t.Fatal(err)
		}
	}
}
