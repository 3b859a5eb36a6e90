// Command guest runs the lab's tests inside the virtual machine. It is built
// static and started from the shared directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rdmaradar/rdmaradar/internal/lab/report"
	"github.com/rdmaradar/rdmaradar/internal/lab/suite"
)

func main() {
	share := flag.String("share", "/mnt", "directory shared with the host: the collector, results and logs")
	pattern := flag.String("run", ".", "regular expression of the tests to run")
	service := flag.Bool("service", false, "run the tests of the package, which need systemd")
	flag.Parse()
	tests := suite.All()
	if *service {
		tests = suite.Service()
	}
	if err := run(*share, *pattern, tests); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

func run(share, pattern string, tests []suite.Test) error {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	events, err := os.OpenFile(filepath.Join(share, "events.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = events.Close() }()
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	if err := report.Append(events, report.Event{Release: strings.TrimSpace(string(release))}); err != nil {
		return err
	}
	ctx := context.Background()
	g, err := suite.Prepare(ctx, share, filepath.Join(share, "otelcol-rdma"))
	if err != nil {
		return fmt.Errorf("set up the guest: %w", err)
	}
	return errors.Join(suite.RunAll(ctx, g, tests, match, events), g.Close())
}
