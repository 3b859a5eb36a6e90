package main

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/rdmaradar/rdmaradar/internal/launch"
)

// stalls knows of moments in which the emulated processor stood still, because the host
// had something else to do. To the guest whatever waited then seems slow by itself. A
// program in C watches for them, internal/lab/stalls: a thread of Go that goes before
// all others may wait for one that it keeps from running.
type stalls struct {
	lines launch.Follower
}

const (
	// mostStall is how long the processor may stand still, in milliseconds. For less
	// than 50 a single request that is slow is no incident.
	mostStall = 40
	// stallAttempts is how often a scenario is played before it counts all the same.
	stallAttempts = 3
	stallLog      = "stalls.log"
)

// watchStalls starts the program, which runs as long as this one.
func watchStalls(ctx context.Context, programs string) (*stalls, error) {
	watcher, err := launch.Start(ctx, stallLog, filepath.Join(programs, "stalls"), strconv.Itoa(mostStall))
	if err != nil {
		return nil, err
	}
	return &stalls{lines: launch.Follower{Path: stallLog}}, watcher.AwaitLine(ctx, "watches", pairLimit)
}

// fresh reports whether there was a stall since the last call.
func (s *stalls) fresh() (bool, error) {
	lines, err := s.lines.Lines()
	return len(lines) > 0, err
}
