package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
	"github.com/rdmaradar/rdmaradar/internal/launch"
)

const (
	// rxeReadyLimit bounds the start of a collector on an emulated CPU.
	rxeReadyLimit = 3 * time.Minute
	// pairLimit bounds how long two ends need to connect.
	pairLimit = time.Minute
	// rxeSettling is how long a device is there before it is used, and rxeQuiet how long
	// nothing is wrong after that: together longer than the ten seconds after which the
	// collector reads the counters of devices on which nothing is slow.
	rxeSettling, rxeQuiet = 6 * time.Second, 6 * time.Second
	// meeting is how long the collector is given to find the library of the devices.
	meeting = 10 * time.Second
)

// rxeStage is where scenarios are played in the guest: two devices are made for each, so
// that verdicts are told apart by them.
type rxeStage struct {
	stage
	// programs is the directory of the collector and of the two ends.
	programs string
	scenes   []rxeScenario
	stalls   *stalls
	// present is what is played, next what gets known meanwhile.
	present, next *laid
	// plays counts what was laid.
	plays int
}

// play runs every scenario once, in a random order, and then what was named wrong once
// more: by chance, or always. One that cannot be played does not keep the others from it.
func (s *rxeStage) play(ctx context.Context, number int, random *rand.Rand) ([]*outcome, error) {
	order := slices.Clone(s.scenes)
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	outcomes, err := s.playAll(ctx, number, order)
	var missed []rxeScenario
	for i := range order {
		if slices.ContainsFunc(outcomes, func(o *outcome) bool { return o.scenario == &order[i].scenario && !o.isRight() }) {
			missed = append(missed, order[i])
		}
	}
	more, errMore := s.playAll(ctx, number, missed)
	return append(outcomes, more...), errors.Join(err, errMore)
}

// playAll runs scenarios in their order.
func (s *rxeStage) playAll(ctx context.Context, number int, order []rxeScenario) ([]*outcome, error) {
	var outcomes []*outcome
	var failed []error
	for i := range order {
		var then *rxeScenario
		if i+1 < len(order) {
			then = &order[i+1]
		}
		o, err := s.undisturbed(ctx, &order[i], then)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", order[i].name, err))
			fmt.Printf("%d  FAILED %s: %s\n", number, order[i].name, err)
			continue
		}
		o.print(number)
		outcomes = append(outcomes, o)
	}
	return outcomes, errors.Join(failed...)
}

// introduce lets the collector meet the library, and the kernel its wires.
func (s *rxeStage) introduce(ctx context.Context) error {
	for _, far := range []bool{false, true} {
		first := &rxeScenario{scenario: scenario{name: "first", names: []string{nothing}}, far: far}
		l, err := s.lay(ctx, first)
		if err != nil {
			return err
		}
		if err := s.beside(ctx, l, func(*pair) error { return launch.Sleep(ctx, meeting) }); err != nil {
			return err
		}
	}
	return nil
}

// undisturbed plays one scenario again when the processor stood still meanwhile, whatever
// was said, as often as that is worth it. The one after it, nil for none, is laid during
// the first time.
func (s *rxeStage) undisturbed(ctx context.Context, played, then *rxeScenario) (*outcome, error) {
	l, err := s.ready(ctx, played)
	for attempt := 1; err == nil; attempt++ {
		var o *outcome
		if o, err = s.inject(ctx, l, then); err != nil {
			break
		}
		var stalled int
		if stalled, err = s.stalls.fresh(); err != nil {
			break
		}
		o.scenario, o.again, o.stalled = &played.scenario, attempt-1, stalled > 0
		if !o.stalled || attempt == stallAttempts {
			return o, nil
		}
		fmt.Printf("   again %s: the emulated processor stood still for more than %d ms, %d times; said was %s\n", played.name, mostStall, stalled, o.first())
		l, err = s.lay(ctx, played)
	}
	return nil, err
}

// inject plays one scenario and waits for what is said of it.
func (s *rxeStage) inject(ctx context.Context, l *laid, then *rxeScenario) (*outcome, error) {
	o := &outcome{scenario: &l.scenario}
	err := s.beside(ctx, l, func(p *pair) error {
		if then != nil && s.next == nil {
			var err error
			if s.next, err = s.lay(ctx, then); err != nil {
				return err
			}
		}
		return s.watch(ctx, o, l.rxeScenario, p)
	})
	if err != nil {
		return nil, err
	}
	o.verdicts = append(o.verdicts, l.wronglySaid(s.said[l.peerDevice()])...)
	slices.SortStableFunc(o.verdicts, func(a, b record) int { return a.came.Compare(b.came) })
	return o, nil
}

// beside does something while the two ends of a scenario run, and removes its devices.
func (s *rxeStage) beside(ctx context.Context, l *laid, do func(*pair) error) (err error) {
	s.present = l
	defer func() {
		s.present = nil
		err = errors.Join(err, l.remove(ctx))
	}()
	if err := s.stalls.settle(ctx, l.known); err != nil {
		return err
	}
	p, err := s.start(ctx, l)
	if err != nil {
		return err
	}
	err = do(p)
	return errors.Join(err, p.stop())
}

// start starts both ends.
func (s *rxeStage) start(ctx context.Context, played *laid) (*pair, error) {
	program := filepath.Join(s.programs, "pair")
	index := strconv.Itoa(wire.GIDIndex)
	start := func(device string, before []string, arguments ...string) (*launch.Child, error) {
		words := append(slices.Concat(before, []string{program}), arguments...)
		return launch.Start(ctx, device+".log", words[0], words[1:]...)
	}
	p := &pair{programs: s.programs, wire: played.wire}
	var err error
	p.server, err = start(played.peerDevice(), beforeOthers, append(played.server, played.peerDevice(), index)...)
	if err != nil {
		return nil, err
	}
	if err := p.server.AwaitLine(ctx, "listens", pairLimit); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	before := played.before
	if before == nil {
		before = beforeOthers
	}
	p.client, err = start(played.device(), before, append(played.client, played.device(), index, p.wire.ServerAddress)...)
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	if err := p.client.AwaitLine(ctx, "runs", pairLimit); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// stop ends both, the client first, and says which had ended by itself.
func (p *pair) stop() error {
	var errs []error
	for _, end := range []*launch.Child{p.client, p.server} {
		if end == nil {
			continue
		}
		if end.Ended() {
			errs = append(errs, errors.Join(errors.New("an end of the connection ended early"), end.Wait()))
		}
	}
	for _, end := range []*launch.Child{p.client, p.server} {
		if end != nil {
			end.Stop()
			_ = end.Wait() // It ends by a signal, or as its peer is gone.
		}
	}
	return errors.Join(errs...)
}

func (s *rxeStage) watch(ctx context.Context, o *outcome, played *rxeScenario, p *pair) error {
	waits := &waits{pid: p.client.PID}
	if err := waits.until(ctx, time.Now().Add(cmp.Or(played.lead, rxeQuiet)), s.read); err != nil {
		return err
	}
	o.injected = time.Now()
	if played.spoil != nil {
		undo, err := played.spoil(ctx, p)
		if err != nil {
			return err
		}
		if undo != nil {
			defer func() {
				if err := undo(); err != nil {
					fmt.Fprintf(os.Stderr, "verdicts: %s: %s\n", played.name, err)
				}
			}()
		}
	}
	return s.listen(ctx, o, waits)
}
