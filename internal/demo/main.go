// The demonstration: a simulated job with a few slow work requests a second on
// one queue, the collector beside it, and what the collector exports, as a live
// table. It checks what it shows against what the job says it did.
//
// It runs in the root of the repository: `make demo`. With the argument
// "check" it only says whether this machine and user can run it, so that what is
// missing is told before anything is built.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const defaultSeconds = 20

func main() {
	// Children end with the thread that started them; see start.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	length, err := lengthFrom(os.Getenv("DEMO_SECONDS"))
	if err := errors.Join(err, preflight()); err != nil {
		return err
	}
	if slices.Equal(arguments, []string{"check"}) {
		return nil
	}
	d := demo{
		length: length,
		out:    os.Stdout,
		table:  table{out: os.Stdout, terminal: isTerminal(os.Stdout)},
	}
	return d.run(ctx)
}

// lengthFrom reads DEMO_SECONDS.
func lengthFrom(text string) (time.Duration, error) {
	if text == "" {
		return defaultSeconds * time.Second, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 3 || seconds > 3600 {
		return 0, fmt.Errorf("DEMO_SECONDS is %q: give whole seconds from 3 to 3600", text)
	}
	return time.Duration(seconds) * time.Second, nil
}

func isTerminal(file *os.File) bool {
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
