package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/doctor"
)

const (
	// lookLimit is how long the look at a node takes at the most, healthLimit how long is
	// waited for who looks. After either, 0.3 s go to whether the kernel holds who looks;
	// a prolog waits for 2 s, and to start and to end takes time.
	lookLimit   = 900 * time.Millisecond
	healthLimit = 1400 * time.Millisecond
	// healthy is how the line of a healthy node begins, unhealthy that of another.
	healthy   = "healthy"
	unhealthy = "not " + healthy
)

// The exit statuses of --node-health.
const (
	// exitUnhealthy is that on a node that is not healthy.
	exitUnhealthy = 1
	// exitNotSeen is that where nothing was seen of the node, which is no fault of it:
	// then there is no line.
	exitNotSeen = 2
)

// errHeld is that who looks has not ended because the kernel holds it, which is a fault;
// errTooLate is that it has not, and it is not known why.
var (
	errHeld    = errors.New("who looks did not end in time: a driver or a file system does not answer")
	errTooLate = errors.New("who looks did not end in time, and no thread of it is held in state D: the node may be too busy, look at its load")
)

// lookAtHealth prints the line, none where it sees nothing. It is run in a process of its own.
func lookAtHealth(ctx context.Context, collector doctor.Collector, least int, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	health, err := doctor.New(ctx, collector).CheckHealth(ctx, least)
	if err != nil {
		return err
	}
	return doctor.WriteHealth(out, &health)
}

// nodeHealth has another process look, and does not wait for its end: a read that hangs in
// a driver cannot be killed, nor does a process end while one of its threads does that.
func nodeHealth(ctx context.Context, look *exec.Cmd, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	line, err := firstLine(ctx, look)
	switch {
	case errors.Is(err, errHeld):
		line = fmt.Sprintf("%s: nothing was seen of this node: %v\n", unhealthy, err)
	case err != nil:
		return &exitError{exitNotSeen, fmt.Errorf("nothing was seen of this node: %w", err)}
	}
	if _, err := io.WriteString(out, line); err != nil {
		// A full disk below a log is no fault of the NICs.
		return &exitError{exitNotSeen, fmt.Errorf("print the health of this node: %w", err)}
	}
	if !strings.HasPrefix(line, healthy) {
		return &exitError{status: exitUnhealthy}
	}
	return nil
}

// firstLine is the line of who looks. What that says on standard error, in place of the
// line, is the error.
func firstLine(ctx context.Context, look *exec.Cmd) (string, error) {
	// A pipe of our own: that of exec is waited for until all who hold it have ended, and
	// who reads our standard error would wait for one that a driver holds.
	reader, writer, err := os.Pipe()
	if err != nil {
		return "", err
	}
	look.Stdout, look.Stderr = writer, writer
	// It is not to be ended, or waited for, with who asked for it.
	look.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = look.Start()
	_ = writer.Close()
	if err != nil {
		return "", err
	}
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(reader).ReadString('\n')
		lines <- line
	}()
	line, err := awaited(ctx, lines, look.Process.Pid)
	if err != nil {
		_ = look.Process.Kill()
		return "", err
	}
	return judgedLine(line)
}

// awaited is a line of a process, that comes before the context ends or while it is looked
// why it has not.
func awaited(ctx context.Context, lines <-chan string, pid int) (string, error) {
	if line, ok := doctor.Await(ctx, lines); ok {
		return line, nil
	}
	why := whyLate(ctx, pid)
	if line, ok := doctor.Await(ctx, lines); ok {
		return line, nil
	}
	return "", why
}

// judgedLine is the line if it is one about health.
func judgedLine(line string) (string, error) {
	said, whole := strings.CutSuffix(line, "\n")
	switch {
	case !whole:
		return "", errors.New("who looks printed no line")
	case !strings.HasPrefix(line, healthy) && !strings.HasPrefix(line, unhealthy):
		return "", errors.New(strings.TrimPrefix(said, "rdmaradar: "))
	default:
		return line, nil
	}
}

// whyLate is why there was no line before the context ended.
func whyLate(ctx context.Context, pid int) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return errors.New("the check was ended by a signal")
	case doctor.IsHeld(pid):
		return errHeld
	default:
		return errTooLate
	}
}
