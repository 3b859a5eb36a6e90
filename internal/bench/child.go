package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a child may take to end after it was asked to.
const stopGrace = 20 * time.Second

// command prepares a child that is asked to end with the signal when the
// context ends, and is told so too when this program dies.
func command(ctx context.Context, stop syscall.Signal, name string, arguments ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, arguments...)
	c.Cancel = func() error { return c.Process.Signal(stop) }
	c.WaitDelay = stopGrace
	c.SysProcAttr = childAttributes()
	return c
}

// childAttributes keep a child from outliving this program. The signal comes
// when the starting *thread* ends, so children are started from the main
// goroutine, which is locked to its thread. A session of its own gives a child a
// scheduling group of its own; see prefer.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
}

// output runs a child and returns what it printed.
func output(c *exec.Cmd) ([]byte, error) {
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, lastLine(complaint.String()))
	}
	return out.Bytes(), nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// ended reports whether an error is that of a child that was asked to end.
func ended(err error) bool {
	var exit *exec.ExitError
	return err == nil || errors.Is(err, context.Canceled) || errors.As(err, &exit) && !exit.Exited()
}
