package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab"
)

const (
	// rxeKernel is the kernel of the lab on which the scenarios are played.
	rxeKernel = "6.12"
	// rxeShuffleLimit bounds one shuffle in the guest, rxeBootLimit what comes before
	// the first.
	rxeShuffleLimit = 12 * time.Minute
	rxeBootLimit    = 5 * time.Minute
	rxeMemoryMiB    = 1536
)

// checkGuest says whether the virtual machine can be had where it is needed: a score
// without its scenarios would seem to be of all.
func checkGuest(played choice) error {
	if len(played.ofGuest()) == 0 {
		return nil
	}
	return wrapGuest(lab.CheckHost())
}

func wrapGuest(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the scenarios of soft-RoCE cannot be played: %w", err)
}

// playGuests plays what soft-RoCE can bring about, in a virtual machine.
func playGuests(ctx context.Context, played choice, runs, seed uint64, total *score) error {
	if len(played.ofGuest()) == 0 {
		return nil
	}
	outcomes, err := shuffleGuest(ctx, played, runs, seed)
	for _, o := range outcomes {
		total.add(o)
	}
	return wrapGuest(err)
}

// shuffleGuest boots a virtual machine with soft-RoCE, plays the scenarios there in so
// many shuffles, and returns what was said of them.
func shuffleGuest(ctx context.Context, played choice, runs, seed uint64) ([]*outcome, error) {
	line, err := lab.FindKernelLine(rxeKernel)
	if err != nil {
		return nil, err
	}
	cache, err := lab.OpenCache(".")
	if err != nil {
		return nil, err
	}
	if err := cache.Prepare(ctx, line); err != nil {
		return nil, err
	}
	share, err := prepareShare(ctx, filepath.Join(outDirectory, "guest"))
	if err != nil {
		return nil, err
	}
	status, err := lab.Machine{
		Kernel: line, Share: share, MemoryMiB: rxeMemoryMiB, TwoNodes: true, Console: os.Stdout,
		Timeout: rxeBootLimit + time.Duration(runs)*rxeShuffleLimit,
		Command: lab.Quote([]string{
			"./verdicts", "-guest", "/mnt", "-only", played.match.String(),
			"-runs", strconv.FormatUint(runs, 10), "-seed", strconv.FormatUint(seed, 10),
		}),
	}.Run(ctx, cache)
	if err != nil {
		return nil, err
	}
	outcomes, err := readOutcomes(filepath.Join(share, rxeResult))
	if status != 0 {
		err = errors.Join(err, fmt.Errorf("the program in the guest ended with status %d, see above", status))
	}
	if want := int(runs) * len(played.ofGuest()); err == nil && len(outcomes) < want {
		err = fmt.Errorf("%d outcomes of the guest, expected at least %d", len(outcomes), want)
	}
	return outcomes, err
}

// prepareShare makes the directory that the guest sees.
func prepareShare(ctx context.Context, directory string) (string, error) {
	share, err := filepath.Abs(directory)
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(share); err != nil {
		return "", err
	}
	if err := os.MkdirAll(share, 0o755); err != nil {
		return "", err
	}
	return share, errors.Join(
		lab.BuildStatic(ctx, ".", share, "verdicts", "./internal/verdicts"),
		lab.BuildVerbsProgram(ctx, ".", share, "pair"),
		lab.BuildVerbsProgram(ctx, ".", share, "stalls"),
		lab.BuildVerbsProgram(ctx, ".", share, "hog"),
		lab.CopyExecutable(collectorPath, filepath.Join(share, "otelcol-rdma")),
		lab.CopyExecutable("internal/verdicts/collector_rxe.yaml", filepath.Join(share, "collector.yaml")),
	)
}
