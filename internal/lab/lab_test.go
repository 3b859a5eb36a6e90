//go:build lab

package lab

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/report"
	"github.com/rdmaradar/rdmaradar/internal/lab/suite"
)

const (
	// guestTimeout bounds one guest; all tests of one kernel take about a third of it
	// on two idle cores.
	guestTimeout = 25 * time.Minute
	repository   = "../.."
)

// TestLab boots one kernel after the other, runs the suite in it, writes
// report.json and throughput.json into out/lab and fails when any test of any
// kernel failed. The variable LAB_RUN, a regular expression, runs a part of it;
// LAB_KERNELS names the kernels, see SelectKernelLines.
func TestLab(t *testing.T) {
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

	pattern, names := selected(t)
	var kernels []report.Kernel
	// One guest after the other: two at once on two cores make each other's
	// requests slow.
	for _, line := range lines {
		boot := Boot{Repository: repository, Kernel: line, Tests: names, Pattern: pattern, Timeout: guestTimeout}
		kernels = append(kernels, runBoot(t, boot, cache, guest))
	}
	whole := report.Report{Kernels: kernels}
	if err := errors.Join(whole.Write(ReportPath(repository)), whole.WriteThroughput(OutputDir(repository))); err != nil {
		t.Fatal(err)
	}
	for _, k := range kernels {
		t.Run(k.Release, func(t *testing.T) { reportKernel(t, k) })
	}
}

func runBoot(t *testing.T, boot Boot, cache *Cache, guest string) report.Kernel {
	ctx, cancel := context.WithTimeout(t.Context(), guestTimeout+time.Minute)
	defer cancel()
	k, err := boot.Run(ctx, cache, guest, &prefixed{prefix: boot.Kernel.Name + "| "})
	if err != nil {
		t.Errorf("kernel %s: %v", boot.Kernel.Name, err)
		k.Release = boot.Kernel.Name
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
				t.Log(result.Why)
			case report.Skip:
				t.Skip(result.Why)
			default:
				t.Error(result.Why)
			}
		})
	}
}

func selected(t *testing.T) (pattern string, names []string) {
	pattern = os.Getenv("LAB_RUN")
	match, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatalf("LAB_RUN: %v", err)
	}
	for _, name := range suite.Names() {
		if match.MatchString(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("LAB_RUN=%q selects no test", pattern)
	}
	return pattern, names
}

// prefixed prints whole lines with a prefix, so that two guests can be told
// apart.
type prefixed struct {
	prefix string
	rest   []byte
}

func (p *prefixed) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		end := bytes.IndexByte(p.rest, '\n')
		if end < 0 {
			return len(b), nil
		}
		line := append([]byte(p.prefix), bytes.TrimRight(p.rest[:end], "\r")...)
		p.rest = p.rest[end+1:]
		if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
			return 0, err
		}
	}
}
