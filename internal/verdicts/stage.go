package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

const (
	pollInterval = 100 * time.Millisecond
	// patience is how long a first verdict is waited for: longer than it may take,
	// so that a late one is told from none.
	patience = 10 * time.Second
	// afterwards is how long later verdicts are waited for: that of the next window
	// is among them.
	afterwards = 1200 * time.Millisecond
	// silence is how long a scenario that must not open an incident is watched.
	silence = 6 * time.Second
)

// stage is where scenarios are played: the collector and what it has said so far.
type stage struct {
	collector *launch.Child
	root      string
	logs      launch.Follower
	said      map[string][]record
	// next is the workload that gets ready while another one is watched.
	next *workload
}

// play plays every scenario once, in a random order.
func (s *stage) play(ctx context.Context, number int, scenarios []scenario, random *rand.Rand) (outcomes []*outcome, err error) {
	defer func() {
		if s.next != nil {
			err = errors.Join(err, s.next.end())
		}
	}()
	if err := s.introduce(ctx); err != nil {
		return nil, err
	}
	all := slices.Clone(scenarios)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		var then *scenario
		if i+1 < len(all) {
			then = &all[i+1]
		}
		seen, err := s.inject(ctx, &all[i], then)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].name, err)
		}
		for _, o := range seen {
			o.print(number)
		}
		outcomes = append(outcomes, seen...)
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

// inject plays one scenario and waits for what is said of it. Meanwhile the one
// after it, nil for none, gets ready.
func (s *stage) inject(ctx context.Context, played, then *scenario) ([]*outcome, error) {
	playing, err := s.ready(ctx, played)
	if err != nil {
		return nil, err
	}
	o := &outcome{scenario: played}
	err = s.watch(ctx, o, playing, then)
	return o.parts(), errors.Join(err, playing.end())
}

// ready is the workload of a scenario, which may have been started before.
func (s *stage) ready(ctx context.Context, played *scenario) (*workload, error) {
	if ready := s.next; ready != nil {
		s.next = nil
		return ready, nil
	}
	return played.start(ctx, outDirectory, s.root)
}

func (s *stage) watch(ctx context.Context, o *outcome, playing *workload, then *scenario) error {
	if err := playing.begin(ctx); err != nil {
		return err
	}
	o.injected = time.Now().Add(o.scenario.quiet())
	waits := &waits{pid: playing.PID}
	if err := waits.look(); err != nil {
		return err
	}
	if then != nil {
		var err error
		if s.next, err = then.start(ctx, outDirectory, s.root); err != nil {
			return err
		}
	}
	if err := waits.until(ctx, o.injected, s.read); err != nil {
		return err
	}
	if o.scenario.meddle != nil {
		undo, err := o.scenario.meddle(ctx, playing.Child)
		if err != nil {
			return err
		}
		// Moving a process into a cgroup may take the kernel a while.
		o.injected = time.Now()
		defer func() {
			playing.Stop()
			if err := undo(); err != nil {
				fmt.Fprintf(os.Stderr, "verdicts: %s: %s\n", o.scenario.name, err)
			}
		}()
	}
	return s.listen(ctx, o, waits)
}

// listen returns when the first verdict has come and some time more has passed, or
// when none is to be expected any more.
func (s *stage) listen(ctx context.Context, o *outcome, waits *waits) error {
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
		if err := waits.look(); err != nil {
			return err
		}
		before := len(o.verdicts)
		o.hear(s.said[o.scenario.device()], waits)
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
