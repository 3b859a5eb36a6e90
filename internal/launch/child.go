// Package launch runs the programs of a demonstration and reads what they write.
package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// stopGrace is how long a child may take to end after SIGTERM.
const stopGrace = 15 * time.Second

// pollInterval is how often a log is looked at.
const pollInterval = 50 * time.Millisecond

// Child is a running program, its output in a file.
type Child struct {
	// PID is its process id.
	PID  int
	name string
	log  string
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// Start runs a program until it ends, Stop is called or ctx is done. Its output goes
// to the file log. It must be called on a locked OS thread: the child is told when
// that thread ends, so that a killed parent leaves nothing behind.
func Start(ctx context.Context, log string, program string, arguments ...string) (*Child, error) {
	output, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer output.Close()

	ctx, cancel := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopGrace
	if err := command.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}

	c := &Child{PID: command.Process.Pid, name: program, log: log, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		err := command.Wait()
		if err != nil && !errors.Is(err, context.Canceled) {
			c.err = fmt.Errorf("%s: %w; the end of %s:\n%s", program, err, log, tail(log, 10))
		}
	}()
	return c, nil
}

// Stop asks the program to end; Wait returns once it has.
func (c *Child) Stop() { c.stop() }

// Ended reports whether the program has ended.
func (c *Child) Ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Wait returns once the program has ended: nil when it ended well or as told.
func (c *Child) Wait() error {
	<-c.done
	c.stop()
	return c.err
}

// AwaitLine returns when the program has printed the line, with an error when it
// ends first or takes longer than limit.
func (c *Child) AwaitLine(ctx context.Context, line string, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		printed, err := os.ReadFile(c.log)
		if err != nil {
			return err
		}
		if strings.Contains(string(printed), line) {
			return nil
		}
		if c.Ended() {
			return fmt.Errorf("%s ended before it was ready; the end of %s:\n%s", c.name, c.log, tail(c.log, 10))
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s was not ready within %s; the end of %s:\n%s", c.name, limit, c.log, tail(c.log, 10))
		}
		if err := Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// tail returns the last lines of a file, or why it cannot be read. A log may hold
// what other processes called themselves.
func tail(path string, lines int) string {
	const lineLimit = 4 << 10
	log, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(log)), "\n")
	last := all[max(len(all)-lines, 0):]
	for i := range last {
		last[i] = text.Clean(strings.ReplaceAll(last[i], "\t", "  "), lineLimit)
	}
	return strings.Join(last, "\n")
}

// Sleep waits for d, or returns the error of ctx when that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
