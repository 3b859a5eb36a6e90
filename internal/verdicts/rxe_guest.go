package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab"
	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
	"github.com/rdmaradar/rdmaradar/internal/launch"
)

// rxeResult is the file in the shared directory with what was said of each scenario.
const rxeResult = "outcomes.json"

// rxeDirectory is in memory: the shared directory is too slow for files that are
// written often.
const rxeDirectory = "/tmp/verdicts"

// rxeOutcome is an outcome on its way from the guest to the host.
type rxeOutcome struct {
	Scenario           string
	Injected           time.Time
	Verdicts           []rxeRecord
	Disturbed, Stalled bool
	Again              int
}

// rxeRecord is a record on its way.
type rxeRecord struct {
	Device, Cause, Confidence, State, Body string
	Came                                   time.Time
}

// runGuest plays the scenarios of soft-RoCE in the guest, whose shared directory it is
// given, and leaves there what was said of them.
func runGuest(ctx context.Context, share, only string, runs, seed uint64) error {
	played, err := newChoice(only)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(rxeDirectory, 0o755); err != nil {
		return err
	}
	if err := os.Chdir(rxeDirectory); err != nil {
		return err
	}
	if err := errors.Join(wire.SetUp(ctx), wire.SetUpSecondVeth(ctx), wire.SetUpNICs(ctx, lab.FarMAC, lab.NearMAC)); err != nil {
		return err
	}
	outcomes, err := playGuest(ctx, share, played.ofGuest(), runs, seed)
	return errors.Join(err, writeOutcomes(filepath.Join(share, rxeResult), outcomes), keepFiles(share))
}

func playGuest(ctx context.Context, share string, scenes []rxeScenario, runs, seed uint64) (outcomes []*outcome, err error) {
	watched, err := watchStalls(ctx, share)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range runs {
		s := &rxeStage{programs: share, scenes: scenes, stalls: watched}
		more, err := s.shuffle(ctx, int(i)+1, random)
		outcomes = append(outcomes, more...)
		if err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}

// shuffle plays all scenarios beside a collector of their own: one knows of so many devices
// in its life, and each play has two.
func (s *rxeStage) shuffle(ctx context.Context, number int, random *rand.Rand) (outcomes []*outcome, err error) {
	s.collector, err = startRxeCollector(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	s.logs = launch.Follower{Path: "logs.jsonl"}
	defer func() {
		s.logs.Close()
		s.collector.Stop()
		err = errors.Join(err, s.collector.Wait())
	}()
	if err := s.introduce(ctx); err != nil {
		return nil, err
	}
	return s.play(ctx, number, random)
}

func startRxeCollector(ctx context.Context, share string) (*launch.Child, error) {
	collector, err := launch.Start(ctx, "collector.log", filepath.Join(share, "otelcol-rdma"), "--config", filepath.Join(share, "collector.yaml"))
	if err != nil {
		return nil, err
	}
	if err := collector.AwaitLine(ctx, readyText, rxeReadyLimit); err != nil {
		collector.Stop()
		return nil, errors.Join(err, collector.Wait())
	}
	return collector, nil
}

func writeOutcomes(path string, outcomes []*outcome) error {
	all := make([]rxeOutcome, 0, len(outcomes))
	for _, o := range outcomes {
		one := rxeOutcome{
			Scenario: o.scenario.name, Injected: o.injected,
			Disturbed: o.disturbed, Stalled: o.stalled, Again: o.again,
		}
		for _, r := range o.verdicts {
			one.Verdicts = append(one.Verdicts, rxeRecord{r.device, r.cause, r.confidence, r.state, r.body, r.came})
		}
		all = append(all, one)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// readOutcomes reads what the guest left. Each must be of a scenario that there is.
func readOutcomes(path string) ([]*outcome, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []rxeOutcome
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	known := map[string]*scenario{}
	for _, s := range rxeScenarios() {
		known[s.name] = &s.scenario
	}
	outcomes := make([]*outcome, 0, len(all))
	for _, one := range all {
		o := &outcome{
			scenario: known[one.Scenario], injected: one.Injected,
			disturbed: one.Disturbed, stalled: one.Stalled, again: one.Again,
		}
		if o.scenario == nil {
			return nil, fmt.Errorf("%s: no scenario %q", path, one.Scenario)
		}
		for _, r := range one.Verdicts {
			o.verdicts = append(o.verdicts, record{
				device: r.Device, cause: r.Cause, confidence: r.Confidence, state: r.State, body: r.Body, came: r.Came,
			})
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// keepFiles copies what was written to where it outlives the guest.
func keepFiles(share string) error {
	return os.CopyFS(filepath.Join(share, "files"), os.DirFS("."))
}
