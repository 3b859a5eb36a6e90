package main

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

// stalls knows of moments in which the emulated processor stood still, because the host
// had something else to do. To the guest whatever waited then seems slow by itself. A
// program in C watches for them, internal/lab/stalls: a thread of Go that goes before
// all others may wait for one that it keeps from running.
type stalls struct {
	lines launch.Follower
	// last is not before the last one.
	last time.Time
}

const (
	// mostStall is how long the processor may stand still, in milliseconds: a request
	// that waits for so long is not slow yet.
	mostStall = 120
	// stallAttempts is how often a scenario is played before it counts all the same.
	stallAttempts = 4
	// calm is for how long it must not have stood still before a scenario begins,
	// calmPatience how long that is waited for.
	calm, calmPatience = 3 * time.Second, 30 * time.Second
	stallLog           = "stalls.log"
)

// watchStalls starts the program, which runs as long as this one.
func watchStalls(ctx context.Context, programs string) (*stalls, error) {
	watcher, err := launch.Start(ctx, stallLog, filepath.Join(programs, "stalls"), strconv.Itoa(mostStall))
	if err != nil {
		return nil, err
	}
	return &stalls{lines: launch.Follower{Path: stallLog}}, watcher.AwaitLine(ctx, "watches", pairLimit)
}

// fresh counts the stalls since the last call.
func (s *stalls) fresh() (int, error) {
	lines, err := s.lines.Lines()
	if len(lines) > 0 {
		s.last = time.Now()
	}
	return len(lines), err
}

// settle waits until that moment, and until the processor did not stand still for a while.
// Whether it did afterwards is what fresh says next.
func (s *stalls) settle(ctx context.Context, until time.Time) error {
	begun := time.Now()
	for {
		if _, err := s.fresh(); err != nil {
			return err
		}
		now := time.Now()
		if now.After(until) && (now.Sub(s.last) >= calm || now.Sub(begun) >= calmPatience) {
			return nil
		}
		if err := launch.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}
