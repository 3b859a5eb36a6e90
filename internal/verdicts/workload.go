package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

// settling is how long a workload is there before it posts: its device has come up
// with it, and what the port carries has to be known, as it is on a host by then.
const settling = 2500 * time.Millisecond

// workload is the program of a scenario.
type workload struct {
	*scenario
	*launch.Child
	// cue is the file that it waits for before it posts.
	cue   string
	known time.Time
}

// start runs the workload of the scenario until it waits for its cue.
func (s *scenario) start(ctx context.Context, out, root string) (*workload, error) {
	length := s.quiet() + patience + 5*time.Second
	cue, err := filepath.Abs(filepath.Join(out, s.device()+".cue"))
	if err != nil {
		return nil, err
	}
	// Its thread goes before the rest of this machine, as one that has a processor
	// to itself would.
	arguments := append([]string{
		"-n", "-15", workloadPath, s.simulation, "--device", s.device(), "--wait-file", cue,
		"--seconds", strconv.FormatFloat(length.Seconds(), 'f', 1, 64),
		"--warmup-quiet-ms", milliseconds(quiet),
	}, s.flags...)
	if !s.hidden {
		arguments = append(arguments, "--sysroot", root)
	}
	child, err := launch.Start(ctx, filepath.Join(out, s.device()+".log"), "nice", arguments...)
	if err != nil {
		return nil, err
	}
	return &workload{scenario: s, Child: child, cue: cue, known: time.Now().Add(settling)}, nil
}

// begin lets it post, once it is known.
func (w *workload) begin(ctx context.Context) error {
	if err := launch.Sleep(ctx, time.Until(w.known)); err != nil {
		return err
	}
	return os.WriteFile(w.cue, nil, 0o644)
}

// end stops it.
func (w *workload) end() error {
	w.Stop()
	return w.Wait()
}
