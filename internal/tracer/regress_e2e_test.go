//go:build e2e

package tracer_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/testprogram"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// The list of one post is not in memory when the probe reads it: the request
// cannot be followed, and no other one is taken for it, though all wr_ids are
// equal.
func TestPostOutOfMemoryIsNoWrongPair(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	r := simulate(t, tr, "rate", "--requests", "8000", "--seconds", "20", "--qps", "1", "--rate", "10000",
		"--depth", "64", "--latency-us", "3000", "--wr-ids", "1", "--evict-post", "2000")
	r.checkBooks()
	r.checkCounts()
	r.checkPairs()
	if r.lost("unreadable_request") == 0 {
		t.Error("every request was read: this says nothing")
	}
	// What came before was certain, and what comes after is not.
	if got := r.completions(); got.Matched < 1000 || got.Unsynced < 1000 {
		t.Errorf("2,000 of 8,000 requests come before the loss, but %+v", got)
	}
}

// The thread ends with the post that could not be followed, and nothing more is seen
// of it: the request is given up in the end, and the queue aligned anew.
func TestPostOutOfMemoryOfThreadThatEnds(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	r := simulate(t, tr, "rate", "--requests", "12000", "--seconds", "20", "--qps", "1", "--rate", "4000",
		"--depth", "64", "--evict-post", "1000", "--evict-apart")
	r.checkBooks()
	r.checkCounts()
	r.checkPairs()
	if got := r.completions(); got.Matched < 4000 || got.Unsynced == 0 || r.lost("unreadable_request") == 0 {
		t.Errorf("of 12,000 requests one was not read, but %+v", got)
	}
}

// A call of ibv_modify_qp that is refused changes nothing: the queue goes on with
// what is outstanding, and no completion of that is taken for a later request.
func TestRefusedModifyIsNoWrongPair(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	r := simulate(t, tr, "rate", "--requests", "4000", "--seconds", "20", "--qps", "1", "--rate", "4000",
		"--depth", "64", "--latency-us", "3000", "--wr-ids", "1", "--refuse-every", "50")
	r.checkBooks()
	r.checkCounts()
	r.checkPairs()
	if got := r.completions(); got.Matched != r.truth.Counts.Completions {
		t.Errorf("%d of %d were timed: %+v", got.Matched, r.truth.Counts.Completions, got)
	}
}

// Many threads post on few queues and are preempted anywhere in our programs, also
// between two looks at a queue that others move on. To none of them the queue is too
// deep, and none leaves memory behind that nobody gives back, for want of which every
// later post would be lost.
func TestStalledPostersLoseNothing(t *testing.T) {
	beside(t)
	tr := startTracer(t, tracer.Config{Threshold: time.Hour, MaxMapBytes: 128 << 20})
	r := simulate(t, tr, "threads", "--seconds", "6", "--depth", "64", "--threads", "16", "--rate", "20000")
	r.checkBooks()
	t.Logf("%+v; lost %v", r.completions(), r.losses())
	for _, reason := range []string{"queue_too_deep", "no_memory"} {
		if n := r.lost(reason); n > 0 {
			t.Errorf("%d requests lost, %s", n, reason)
		}
	}
	if r.matched() < 1000 {
		t.Error("next to nothing was timed: this says nothing")
	}
}

// A Shared Receive Queue ends when it is destroyed: another one may have its address
// while the process lives.
func TestSharedReceiveQueueEnds(t *testing.T) {
	beside(t)
	tr := startTracer(t, everything)
	simulate(t, tr, "srq", "--seconds", "0.3").checkBooks()
	ends, err := tracer.EndsOfSRQs(tr)
	if err != nil || !slices.Equal(ends, []string{"destroy"}) {
		t.Errorf("the ends of Shared Receive Queues are %q, %v", ends, err)
	}
}

// In mid-stream, wr_ids that rise for a while and go round sooner than a queue
// is deep look like those of requests that are outstanding: nothing is timed.
func TestMidstreamWithShortRoundOfIDs(t *testing.T) {
	beside(t)
	r := joinMidstream(t, seen(20000), "rate", "--qps", "1", "--rate", "20000", "--depth", "128",
		"--latency-us", "10000", "--wr-ids", "40")
	r.checkBooks()
	r.checkPairs()
	if got := r.completions(); got.Matched != 0 || got.Unsynced < 1000 {
		t.Errorf("nothing is certain, but %+v", got)
	}
}

// Requests of sq_sig_all queues ask for no completion and get one: their
// wr_ids align the queue in mid-stream as those of others do.
func TestMidstreamAlignsSigAll(t *testing.T) {
	beside(t)
	// More than the deepest queue holds: how deep this one is was not seen.
	r := joinMidstream(t, seen(60000), "sig-all", "--qps", "1", "--rate", "50000")
	r.checkBooks()
	r.checkPairs()
	if got := r.completions(); got.Matched < 1000 || got.Unsynced == 0 {
		t.Errorf("mid-stream with rising wr_ids, but %+v", got)
	}
}

// A poll that returns more completions than are looked at leaves requests whose
// completions went by; those that have their wr_ids later are not taken for them.
func TestPollTooDeepIsNoWrongPair(t *testing.T) {
	beside(t)
	const depth, gathered = "512", 400
	tr := startTracer(t, entryReturn()) // At sites no poll is too deep.
	r := simulate(t, tr, "rate", "--requests", "20000", "--seconds", "20", "--qps", "1", "--rate", "20000",
		"--depth", depth, "--wr-ids", depth, "--latency-us", "20000", "--gather", "400", "--gather-after", "8000")
	r.checkBooks()
	r.checkPairs()
	got := r.completions()
	unseen := r.truth.Counts.Completions - got.Seen
	if unseen == 0 || unseen >= gathered {
		t.Errorf("of a poll of %d completions, %d were not looked at: this says nothing", gathered, unseen)
	}
	if lost := r.lost("batch_too_deep"); lost != unseen {
		t.Errorf("%d completions were not looked at, %d counted", unseen, lost)
	}
	if got.Matched < 1000 {
		t.Errorf("8,000 requests come before the loss, but %+v", got)
	}
}

// A library that changes in its place, as with upgrades, is probed anew each
// time, and each time takes the place of its predecessor.
func TestChangingLibraryTakesOneCookie(t *testing.T) {
	beside(t)
	const rounds = 30
	dir := copyLibraries(t)
	tr := startTracer(t, tracer.Config{Threshold: time.Hour})
	introduce(t, tr, dir)
	probes, free := len(snapshot(t, tr).Probes), tracer.FreeCookies(tr)
	for round := range rounds {
		now := time.Now()
		if err := os.Chtimes(filepath.Join(dir, "libverbsim-rdmav34.so"), now, now); err != nil {
			t.Fatal(err)
		}
		w := startHeld(t, dir, "--requests", "1")
		after := tracer.FreeCookies(tr)
		// The old cookie may come back before the new one is taken.
		for deadline := time.Now().Add(time.Minute); (len(after) != len(free) || slices.Equal(after, free)) && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
			after = tracer.FreeCookies(tr)
		}
		w.release()
		w.wait()
		if after = tracer.FreeCookies(tr); len(after) != len(free) {
			t.Fatalf("%d cookies are free after the library changed, %d before", len(after), len(free))
		}
		if slices.Equal(after, free) {
			t.Fatalf("the library changed the %d. time and was not probed anew", round+1)
		}
		free = after
	}
	if got := len(snapshot(t, tr).Probes); got != probes {
		t.Errorf("%d probes, %d before the library changed", got, probes)
	}
}

// A process that ends at once may be the first to map a library; the next one
// is seen all the same.
func TestShortLivedFirstUser(t *testing.T) {
	beside(t)
	dir := copyLibraries(t)
	tr := startTracer(t, tracer.Config{Threshold: time.Hour})
	simulateFrom(t, dir, "--requests", "1").wait()
	time.Sleep(time.Second)
	for round := range 2 {
		before := snapshot(t, tr).Completions.Seen
		w := startHeld(t, dir, "--requests", "2000", "--rate", "2000")
		waitForProbes(t, tr, dir)
		w.release()
		truth, _ := w.wait()
		seen := snapshot(t, tr).Completions.Seen - before
		if seen != truth.Counts.Completions {
			t.Errorf("run %d: %d completions were seen, by the workload %d", round, seen, truth.Counts.Completions)
		}
	}
}

// copyLibraries makes a directory with a simulator and libraries that nobody
// has mapped.
func copyLibraries(t *testing.T) string {
	t.Helper()
	requireRoot(t)
	dir, err := os.MkdirTemp(homeOf(t).dir, "copies-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, name := range []string{"verbsim", "libverbsim-rdmav34.so", "libibverbs.so.1"} {
		content, err := os.ReadFile(filepath.Join(homeOf(t).dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := testprogram.Write(filepath.Join(dir, name), content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// simulateFrom starts one queue of the scenario rate with the libraries of dir.
func simulateFrom(t *testing.T, dir string, flags ...string) *workload {
	t.Helper()
	out := t.TempDir()
	w := &workload{t: t, truthFile: filepath.Join(out, "truth.json"), recordsFile: filepath.Join(out, "records.bin")}
	flags = append([]string{"--qps", "1", "--truth", w.truthFile, "--truth-records", w.recordsFile}, flags...)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	w.command = simulator(ctx, dir, "rate", flags...)
	w.command.Stdout, w.command.Stderr = &w.output, &w.output
	if err := w.command.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// startHeld is simulateFrom of a workload that waits to be released.
func startHeld(t *testing.T, dir string, flags ...string) *workload {
	t.Helper()
	start := filepath.Join(t.TempDir(), "start")
	w := simulateFrom(t, dir, append([]string{"--wait-file", start}, flags...)...)
	w.start = start
	return w
}

// introduce runs a program with the libraries of a directory until they are probed.
func introduce(t *testing.T, tr *tracer.Tracer, dir string) {
	t.Helper()
	w := startHeld(t, dir, "--requests", "1")
	waitForProbes(t, tr, dir)
	w.release()
	w.wait()
}

// waitForProbes waits until both libraries of a directory are probed.
func waitForProbes(t *testing.T, tr *tracer.Tracer, dir string) {
	t.Helper()
	probed := map[string]bool{}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		clear(probed)
		for _, probe := range snapshot(t, tr).Probes {
			if strings.HasPrefix(probe.Library, dir+"/") {
				probed[probe.Library] = true
			}
		}
		if len(probed) == 2 {
			return
		}
	}
	t.Errorf("of libibverbs and its provider in %s, probed are %v", dir, probed)
}

// However many names of devices processes made up, those that sysfs has are known.
func TestMadeUpDevicesLeaveRoom(t *testing.T) {
	beside(t)
	root := t.TempDir()
	if err := os.Symlink("/proc", filepath.Join(root, "proc")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "sys/class/infiniband/sim7"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := everything
	cfg.Root = root
	tr := startTracer(t, cfg)
	if err := tracer.ExhaustDevices(tr); err != nil {
		t.Fatal(err)
	}
	collected := collect(tr)
	for _, c := range []struct {
		device, want string
		lost         bool
	}{{"sim7", "sim7", false}, {"made-up", "", true}} {
		r := followWith(t, tr, collected, "rate", "--requests", "200", "--rate", "2000", "--device", c.device)
		r.checkBooks()
		r.series(func(s *verbs.Series) {
			if s.Key.Device != c.want {
				t.Errorf("the device of %s is %q", c.device, s.Key.Device)
			}
		})
		if lost := r.lost("device_map_full") > 0; lost != c.lost || r.matched() == 0 {
			t.Errorf("%s: %d timed, without an index: %v", c.device, r.matched(), lost)
		}
	}
}

// The queues of a device that is not taken end, also when they were there
// before the device was known: none is listed, none is reported as stuck.
func TestExcludedDeviceOfRunningProcess(t *testing.T) {
	beside(t)
	tr := startTracer(t, tracer.Config{
		Threshold:   time.Hour,
		TakesDevice: func(name string) bool { return name != "sim1" },
	})
	collected := collect(tr)
	w := startWorkload(t, "two-devices", "--seconds", "60", "--rate", "5000", "--latency-us", "3000")
	w.release()
	for range 3 {
		time.Sleep(time.Second)
		taken := 0
		s := snapshot(t, tr)
		for _, series := range s.Series {
			if series.Key.Device == "sim1" {
				t.Errorf("%d completions of a device that is not taken are told of", series.Completions)
			}
		}
		for _, queue := range s.Queues {
			if int(queue.ID.Process.TGID) != w.command.Process.Pid {
				continue
			}
			if queue.Device != "sim0" {
				t.Errorf("a queue of the device %q is listed: %d outstanding, the oldest for %v", queue.Device, queue.Outstanding, queue.Oldest)
			}
			taken++
		}
		if taken == 0 {
			t.Error("no queue of the device that is taken is listed")
		}
	}
	w.stop()
	w.wait()
	collected.mu.Lock()
	defer collected.mu.Unlock()
	for _, stuck := range collected.stuck {
		t.Errorf("reported as stuck on %s: qp %#x, %v", stuck.Device, stuck.Queue.QPNumber, stuck.Age)
	}
}
