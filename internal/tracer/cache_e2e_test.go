//go:build e2e

package tracer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/rdmaradar/rdmaradar/internal/provider"
	"github.com/rdmaradar/rdmaradar/internal/tracer"
)

// pollProbes are the programs that stand on entry and return of poll_cq.
var pollProbes = []string{"enter_poll_cq", "leave_poll_cq"}

// providers are those of the simulator.
var providers = []string{"libverbsim-rdmav34.so", "libverbsim-rdmav34-nocet.so"}

// Libraries that were verified are observed at their completion sites from the
// start on: no probe on entry or return of a poll_cq is placed, and none ever
// runs.
func TestVerifiedLibraryIsNotTrappedOnPolls(t *testing.T) {
	beside(t)
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stats.Close() }()
	cfg := everything
	cfg.CacheDirectory = filepath.Join(t.TempDir(), "cache")

	first := startTracer(t, cfg)
	collect(first)
	// Before it traces, a tracer tries its probes on a child of its own.
	links, tried := probesOnPolls(t, first)
	if links == 0 {
		t.Error("libraries that nobody verified have no probes on entry and return: this says nothing")
	}
	verify(t, first)
	if _, runs := probesOnPolls(t, first); runs == tried {
		t.Error("the probes on entry and return never ran: this says nothing")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := startTracer(t, cfg)
	if links, tried = probesOnPolls(t, second); links != 0 || !atSites(t, second, providers...) {
		t.Errorf("libraries that were verified have %d probes on entry and return", links)
	}
	collected := collect(second)
	for _, name := range providers {
		r := followWith(t, second, collected, "perftest", "--seconds", "1.2", "--provider", binary(t, name))
		r.checkBooks()
		r.checkCounts()
		if r.matched() == 0 {
			t.Errorf("%s: nothing was timed", name)
		}
		r.checkPairs()
	}
	if links, runs := probesOnPolls(t, second); links != 0 || runs != tried || !atSites(t, second, providers...) {
		t.Errorf("in the end there are %d probes on entry and return, which ran %d times", links, runs-tried)
	}
}

// verify runs load until both providers are observed at their sites.
func verify(t *testing.T, tr *tracer.Tracer) {
	t.Helper()
	for _, name := range providers {
		w := startWorkload(t, "nccl", "--seconds", "60", "--provider", binary(t, name))
		w.waitReady()
		w.release()
		w.waitFor(30*time.Second, func() bool { return atSites(t, tr, name) })
		w.stop()
		w.wait()
	}
	if !atSites(t, tr, providers...) {
		t.Fatal("the simulator's providers are not observed at completion sites")
	}
}

// atSites reports whether all of the providers are observed at completion sites.
func atSites(t *testing.T, tr *tracer.Tracer, names ...string) bool {
	t.Helper()
	n := 0
	for _, probe := range snapshot(t, tr).Probes {
		if slices.Contains(names, filepath.Base(probe.Library)) && probe.Mode == "site" && slices.Contains(probe.Functions, "poll_cq") {
			n++
		}
	}
	return n == len(names)
}

// Sites that were found wrong are not compared again: entry and return stay.
func TestWrongSitesAreNotCompared(t *testing.T) {
	beside(t)
	cfg := everything
	cfg.CacheDirectory = filepath.Join(t.TempDir(), "cache")
	cache, err := provider.OpenCache(cfg.CacheDirectory, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	library := inspect(t, providers[0])
	for _, target := range library.Find(provider.PollCQ) {
		provider.NewVerdicts(cache).Record(library, target.Offset, provider.Wrong)
	}
	if err := cache.Close(); err != nil {
		t.Fatal(err)
	}
	tr := startTracer(t, cfg)
	r := simulate(t, tr, "nccl", "--seconds", "3")
	r.checkBooks()
	r.checkPairs()
	for _, probe := range snapshot(t, tr).Probes {
		if filepath.Base(probe.Library) == providers[0] && slices.Contains(probe.Functions, provider.PollCQ.String()) && probe.Mode != "windows" {
			t.Errorf("%v of %s: %s", probe.Functions, probe.Library, probe.Mode)
		}
	}
}

// inspect analyses a provider of the simulator.
func inspect(t *testing.T, name string) *provider.Library {
	t.Helper()
	content := func(name string) *bytes.Reader {
		b, err := os.ReadFile(binary(t, name))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(b)
	}
	_, slots, err := provider.InspectVerbs(content("libibverbs.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	library, err := provider.InspectProvider(content(name), slots)
	if err != nil {
		t.Fatal(err)
	}
	return library
}

// A cache that cannot be used is a warning, and tracing does without.
func TestUnusableCacheIsAWarning(t *testing.T) {
	beside(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cfg := everything
	cfg.CacheDirectory = dir
	tr := startTracerLogging(t, cfg, &log)
	r := simulate(t, tr, "perftest", "--seconds", "0.5")
	r.checkBooks()
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "cache directory cannot be used"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("%d files were written to a directory that all may write to (%v)", len(entries), err)
	}
}

// probesOnPolls counts the links that place the programs of a tracer on entry and
// return of poll_cq, and how often these ran.
func probesOnPolls(t *testing.T, tr *tracer.Tracer) (links int, runs uint64) {
	t.Helper()
	watched := map[ebpf.ProgramID]bool{}
	for _, name := range pollProbes {
		program := tracer.Program(tr, name)
		info, err := program.Info()
		if err != nil {
			t.Fatal(err)
		}
		id, ok := info.ID()
		if !ok {
			t.Fatal("this kernel does not tell the numbers of programs")
		}
		stats, err := program.Stats()
		if err != nil {
			t.Fatal(err)
		}
		watched[id] = true
		runs += stats.RunCount
	}
	all := new(link.Iterator)
	defer all.Close()
	for all.Next() {
		info, err := all.Link.Info()
		if err != nil {
			t.Fatal(err)
		}
		if watched[info.Program] {
			links++
		}
	}
	if err := all.Err(); err != nil {
		t.Fatal(err)
	}
	return links, runs
}
