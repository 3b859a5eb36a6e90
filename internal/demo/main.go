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
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const defaultSeconds = 20

const usage = `usage: demo [check]

Runs the demonstration, in the root of the repository, and empties out/demo for
it. DEMO_SECONDS is how long, 20 by default. With "check" it only says whether
this machine and user can run it.
`

// errUsage is that of arguments that are not known.
var errUsage = errors.New("unknown arguments")

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	// Children end with the thread that started them; see start.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %s\n", message(ctx, err))
		os.Exit(status(err))
	}
}

// message is what is told of an error. After Ctrl-C, which ends the children too,
// an error is a consequence of it.
func message(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "interrupted"
	}
	return err.Error()
}

func status(err error) int {
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitFailed
}

// command is what the arguments ask for.
type command int

const (
	commandRun command = iota
	commandCheck
	commandHelp
)

// parse refuses what it does not know: a run empties a directory.
func parse(arguments []string) (command, error) {
	if len(arguments) == 0 {
		return commandRun, nil
	}
	if len(arguments) == 1 {
		switch arguments[0] {
		case "check":
			return commandCheck, nil
		case "-h", "--help":
			return commandHelp, nil
		}
	}
	return 0, fmt.Errorf("%w: %q: usage: demo [check]", errUsage, arguments)
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	asked, err := parse(arguments)
	if err != nil {
		return err
	}
	if asked == commandHelp {
		_, err := fmt.Fprint(out, usage)
		return err
	}
	length, err := lengthFrom(os.Getenv("DEMO_SECONDS"))
	if err := errors.Join(err, preflight()); err != nil {
		return err
	}
	if asked == commandCheck {
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
