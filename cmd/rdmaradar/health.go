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
	// waited for who looks. A prolog waits for 2 s, and to start and to end takes time.
	lookLimit   = 1200 * time.Millisecond
	healthLimit = 1600 * time.Millisecond
	// healthy is how the line of a healthy node begins.
	healthy = "healthy"
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
// errTooLate is that it has not for want of a processor or of memory, which is none.
var (
	errHeld    = errors.New("who looks did not end in time: a driver or a file system does not answer")
	errTooLate = errors.New("who looks did not end in time, and the kernel does not hold it: the node is too busy")
)

// lookAtHealth prints the line, none where it sees nothing. It is run in a process of its own.
func lookAtHealth(ctx context.Context, collector doctor.Collector, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	health, err := doctor.New(ctx, collector).CheckHealth(ctx)
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
		line = fmt.Sprintf("not %s: nothing was seen of this node: %v\n", healthy, err)
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

// firstLine is the first line that a command prints.
func firstLine(ctx context.Context, command *exec.Cmd) (string, error) {
	// A pipe of our own: that of exec is waited for until all who hold it have ended.
	reader, writer, err := os.Pipe()
	if err != nil {
		return "", err
	}
	command.Stdout = writer
	// It is not to be ended, or waited for, with who asked for it.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = command.Start()
	_ = writer.Close()
	if err != nil {
		return "", err
	}
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(reader).ReadString('\n')
		lines <- line
	}()
	select {
	case line := <-lines:
		if !strings.HasSuffix(line, "\n") {
			return "", errors.New("who looks printed no line")
		}
		return line, nil
	case <-ctx.Done():
		defer func() { _ = command.Process.Kill() }()
		switch {
		case errors.Is(ctx.Err(), context.Canceled):
			return "", errors.New("the check was ended by a signal")
		case isHeld(command.Process.Pid):
			return "", errHeld
		default:
			return "", errTooLate
		}
	}
}
