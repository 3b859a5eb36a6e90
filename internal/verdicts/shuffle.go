package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

const (
	outDirectory  = "out/verdicts"
	resultPath    = "out/verdicts.json"
	collectorPath = "bin/otelcol-rdma"
	workloadPath  = "bin/verbsim"
	configPath    = "internal/verdicts/collector.yaml"

	readyText  = "Everything is ready"
	readyLimit = 60 * time.Second

	pollInterval = 100 * time.Millisecond
	// patience is how long a first verdict is waited for: longer than it may take,
	// so that a late one is told from none.
	patience = 10 * time.Second
	// afterwards is how long later verdicts are waited for.
	afterwards = 1500 * time.Millisecond
	// silence is how long a scenario that must not open an incident is watched.
	silence = 6 * time.Second
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

// stage is where scenarios are played: the collector and what it has said so far.
type stage struct {
	collector *launch.Child
	root      string
	logs      launch.Follower
	said      map[string][]record
}

func (s *stage) play(ctx context.Context, number int, scenarios []scenario, random *rand.Rand) ([]*outcome, error) {
	if err := s.introduce(ctx); err != nil {
		return nil, err
	}
	all := slices.Clone(scenarios)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var outcomes []*outcome
	for i := range all {
		o, err := s.inject(ctx, &all[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].name, err)
		}
		o.print(number)
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// introduce lets the collector meet the library.
func (s *stage) introduce(ctx context.Context) error {
	first := exec.CommandContext(ctx, workloadPath, "perftest-lat", "--seconds", "3", "--rate", "20000", "--device", "v_first", "--sysroot", s.root)
	if out, err := first.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", first, err, out)
	}
	return nil
}

// inject plays one scenario and waits for what is said of it.
func (s *stage) inject(ctx context.Context, played *scenario) (*outcome, error) {
	workload, err := played.start(ctx, outDirectory, s.root)
	if err != nil {
		return nil, err
	}
	o := &outcome{scenario: played}
	err = s.watch(ctx, o, workload)
	workload.Stop()
	return o, errors.Join(err, workload.Wait())
}

func (s *stage) watch(ctx context.Context, o *outcome, workload *launch.Child) error {
	if err := launch.Sleep(ctx, settling+o.scenario.quiet()); err != nil {
		return err
	}
	o.injected = time.Now()
	if o.scenario.meddle != nil {
		undo, err := o.scenario.meddle(ctx, workload)
		if err != nil {
			return err
		}
		defer func() {
			workload.Stop()
			if err := undo(); err != nil {
				fmt.Fprintf(os.Stderr, "verdicts: %s: %s\n", o.scenario.name, err)
			}
		}()
	}
	return s.listen(ctx, o)
}

// listen returns when the first verdict has come and some time more has passed, or
// when none is to be expected any more.
func (s *stage) listen(ctx context.Context, o *outcome) error {
	limit := o.injected.Add(patience)
	if o.scenario.sees(nothing) {
		limit = o.injected.Add(silence)
	}
	for time.Now().Before(limit) {
		if s.collector.Ended() {
			return errors.New("the collector ended early")
		}
		if err := s.read(); err != nil {
			return err
		}
		before := len(o.verdicts)
		o.verdicts = s.said[o.scenario.device()]
		if before == 0 && len(o.verdicts) > 0 {
			limit = time.Now().Add(afterwards)
		}
		if err := launch.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
	return nil
}

// read takes in what the collector has said since the last call.
func (s *stage) read() error {
	lines, err := s.logs.Lines()
	if err != nil {
		return err
	}
	if s.said == nil {
		s.said = map[string][]record{}
	}
	for _, line := range lines {
		records, err := parseRecords(line, time.Now())
		if err != nil {
			return err
		}
		for _, r := range records {
			s.said[r.device] = append(s.said[r.device], r)
		}
	}
	return nil
}

func (o *outcome) print(number int) {
	mark := "right"
	if !o.scenario.sees(o.first()) {
		mark = "WRONG"
	}
	if o.isLie() {
		mark = "LIE"
	}
	fmt.Printf("%d  %-5s %-26s %s after %.1f s\n", number, mark, o.scenario.name, o.first(), o.seconds())
	for i := range o.verdicts {
		if mark != "right" || i == 0 {
			fmt.Printf("      %s\n", o.verdicts[i].body)
		}
	}
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
