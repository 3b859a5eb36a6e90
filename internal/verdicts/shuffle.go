package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

const (
	outDirectory  = "out/verdicts"
	collectorPath = "bin/otelcol-rdma"
	workloadPath  = "bin/verbsim"
	configPath    = "internal/verdicts/collector.yaml"

	readyText  = "Everything is ready"
	readyLimit = 60 * time.Second
)

// shuffle runs every scenario once, in a random order, beside one collector.
func shuffle(ctx context.Context, number int, scenarios []scenario, random *rand.Rand) ([]*outcome, error) {
	root, err := prepare(outDirectory)
	if err != nil {
		return nil, err
	}
	collector, err := startCollector(ctx, root)
	if err != nil {
		return nil, err
	}
	stage := &stage{collector: collector, root: root, logs: launch.Follower{Path: filepath.Join(outDirectory, "logs.jsonl")}}
	defer stage.logs.Close()
	outcomes, err := stage.play(ctx, number, scenarios, random)
	collector.Stop()
	return outcomes, errors.Join(err, collector.Wait())
}

// prepare empties the directory of the runs and makes in it the root that the
// collector sees: this machine's processes and cgroups, with a sysfs of its own in
// which workloads describe their devices.
func prepare(directory string) (root string, err error) {
	if err := os.RemoveAll(directory); err != nil {
		return "", err
	}
	root, err = filepath.Abs(filepath.Join(directory, "root"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(root, "sys", "fs"), 0o755); err != nil {
		return "", err
	}
	return root, errors.Join(
		os.Symlink("/proc", filepath.Join(root, "proc")),
		os.Symlink("/sys/devices", filepath.Join(root, "sys", "devices")),
		os.Symlink("/sys/fs/cgroup", filepath.Join(root, "sys", "fs", "cgroup")),
	)
}

func startCollector(ctx context.Context, root string) (*launch.Child, error) {
	collector, err := launch.Start(ctx, filepath.Join(outDirectory, "collector.log"), collectorPath,
		"--config", configPath,
		"--config", "yaml:receivers::rdma::root_path: "+root)
	if err != nil {
		return nil, err
	}
	if err := collector.AwaitLine(ctx, readyText, readyLimit); err != nil {
		collector.Stop()
		return nil, errors.Join(err, collector.Wait())
	}
	return collector, nil
}
