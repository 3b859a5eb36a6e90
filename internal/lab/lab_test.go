//go:build lab

package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rdmaradar/rdmaradar/internal/lab/report"
	"github.com/rdmaradar/rdmaradar/internal/lab/suite"
)

const (
	// guestTimeout bounds one guest, which takes about a third of it while each has a
	// core. Two rounds of guests fit into the time that make lab gives the tests.
	guestTimeout = 30 * time.Minute
	repository   = "../.."
)

// TestLab boots the kernels, as many at once as there are CPUs, runs the suite in
// each, writes report.json and throughput.json into out/lab and fails when any test
// of any kernel failed. The variable LAB_RUN, a regular expression, runs a part of
// it; LAB_KERNELS names the kernels, see SelectKernelLines. With LAB_KEEP the results of
// an earlier run stand where nothing that decides them has changed, see Boot.Keep, and
// out/lab/kept.txt says which.
func TestLab(t *testing.T) {
	// It holds one place among the parallel tests, whatever runs at once in it.
	t.Parallel()
	if err := CheckHost(); err != nil {
		t.Fatal(err)
	}
	cache, err := OpenCache(repository)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := SelectKernelLines(os.Getenv("LAB_KERNELS"))
	if err != nil {
		t.Fatalf("LAB_KERNELS: %v", err)
	}
	begin := time.Now()
	if err := cache.Prepare(t.Context(), lines...); err != nil {
		t.Fatal(err)
	}
	guest, err := BuildGuest(t.Context(), repository, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("images and guest program ready after %s", time.Since(begin).Round(time.Second))

	boots := boots(t, lines)
	kernels := make([]report.Kernel, len(boots))
	var guests errgroup.Group
	// An emulated CPU is a thread that is never idle for long. GOMAXPROCS knows the
	// limits of a container, too.
	guests.SetLimit(runtime.GOMAXPROCS(0))
	for i, boot := range boots {
		guests.Go(func() error {
			t.Run(boot.name(), func(t *testing.T) {
				kernels[i] = runBoot(t, boot, cache, guest)
				reportKernel(t, kernels[i])
			})
			return nil
		})
	}
	_ = guests.Wait()
	whole := report.Report{Kernels: kernels}
	if err := errors.Join(whole.Write(ReportPath(repository)), whole.WriteThroughput(OutputDir(repository)), whole.WriteKept(OutputDir(repository))); err != nil {
		t.Fatal(err)
	}
}

// runBoot runs one guest. Its progress and console are the output of its own test,
// so that those of two are not mixed.
func runBoot(t *testing.T, boot Boot, cache *Cache, guest string) report.Kernel {
	ctx, cancel := context.WithTimeout(t.Context(), guestTimeout+time.Minute)
	defer cancel()
	k, err := boot.Run(ctx, cache, guest, plainLines{t.Output()})
	if err != nil {
		t.Errorf("kernel %s: %v", boot.Kernel.Name, err)
		k.Release = boot.Kernel.Name
	}
	t.Logf("kernel %s", k.Release)
	if k.KeptFrom != nil {
		t.Logf("results of %s: nothing that decides them has changed", k.KeptFrom)
	}
	return k
}

func reportKernel(t *testing.T, k report.Kernel) {
	if len(k.Tests) == 0 {
		t.Fatal("no test reported")
	}
	for _, result := range k.Tests {
		t.Run(result.Name, func(t *testing.T) {
			switch result.Result {
			case report.Pass:
				t.Logf("%.1f s: %s", result.Seconds, result.Why)
			case report.Skip:
				t.Skip(result.Why)
			default:
				t.Error(result.Why)
			}
		})
	}
}

// boots are those of each kernel, the longer ones first, with the tests that LAB_RUN
// selects.
func boots(t *testing.T, lines []KernelLine) []Boot {
	pattern := os.Getenv("LAB_RUN")
	match, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatalf("LAB_RUN: %v", err)
	}
	var all []Boot
	for _, service := range []bool{false, true} {
		tests := suite.All()
		if service {
			tests = suite.Service()
		}
		names := slices.DeleteFunc(suite.Names(tests), func(name string) bool { return !match.MatchString(name) })
		if len(names) == 0 {
			continue
		}
		for _, line := range lines {
			all = append(all, Boot{Repository: repository, Kernel: line, Tests: names, Pattern: pattern, Timeout: guestTimeout, Service: service, Keep: os.Getenv("LAB_KEEP") != ""})
		}
	}
	if len(all) == 0 {
		t.Fatalf("LAB_RUN=%q selects no test", pattern)
	}
	return all
}

// plainLines drops the carriage returns of a serial console.
type plainLines struct{ to io.Writer }

func (p plainLines) Write(b []byte) (int, error) {
	_, err := p.to.Write(bytes.ReplaceAll(b, []byte("\r"), nil))
	return len(b), err
}
