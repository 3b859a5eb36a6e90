// The score of the verdicts: everything that this host can make go wrong with a
// simulated workload is made to, in a shuffled order, beside the collector, and
// what it says is held against what was done.
//
// What needs devices of the kernel is played with soft-RoCE in a virtual machine, by
// this same program.
//
// It runs in the root of the repository: `make verdicts`. VERDICT_RUNS is how many
// shuffles, 5 by default, VERDICT_SEED begins the shuffling where an earlier run
// did, VERDICT_ONLY is a regular expression of the scenarios to play, and VERDICT_PLACE
// leaves out those of the virtual machine (here) or of this one (guest).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
)

func main() {
	// Children end with the thread that started them.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	share := flag.String("guest", "", "play the scenarios of soft-RoCE, in a guest with this shared directory")
	runs := flag.Uint64("runs", 1, "with -guest: how many shuffles")
	seed := flag.Uint64("seed", 1, "with -guest: where the shuffling begins")
	only := flag.String("only", "", "with -guest: regular expression of the scenarios to play")
	flag.Parse()
	do := run
	if *share != "" {
		do = func(ctx context.Context) error { return runGuest(ctx, *share, *only, *runs, *seed) }
	}
	if err := do(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "verdicts: %s\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	runs, err := numberFrom("VERDICT_RUNS", 5)
	if err != nil {
		return err
	}
	seed, err := numberFrom("VERDICT_SEED", rand.Uint64N(1_000_000)+1)
	if err != nil {
		return err
	}
	played, err := choiceFrom("VERDICT_ONLY", "VERDICT_PLACE")
	if err != nil {
		return err
	}
	if err := errors.Join(checkTools(), checkGuest(played)); err != nil {
		return err
	}
	fmt.Printf("%d shuffles, seed %d\n", runs, seed)
	total := newScore(int(runs), seed)
	err = errors.Join(playHost(ctx, played, runs, seed, total), playGuests(ctx, played, runs, seed, total))
	total.print(os.Stdout)
	if err != nil {
		return err
	}
	if err := total.write(played.resultPath()); err != nil {
		return err
	}
	return total.check()
}

// playHost plays what this host can bring about.
func playHost(ctx context.Context, played choice, runs, seed uint64, total *score) error {
	scenarios := played.ofHost()
	if len(scenarios) == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range runs {
		outcomes, err := shuffle(ctx, int(i)+1, scenarios, random)
		for _, o := range outcomes {
			total.add(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// numberFrom reads a positive whole number from the environment.
func numberFrom(variable string, otherwise uint64) (uint64, error) {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%s is %q: give a whole number from 1 on", variable, text)
	}
	return n, nil
}

// checkTools names the programs that are missing.
func checkTools() error {
	_, err := exec.LookPath("taskset")
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("taskset is not installed: apt-get install util-linux")
	}
	return err
}
