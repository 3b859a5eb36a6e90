// The benchmark: what being observed costs a program, side by side in one run,
// and what the agent costs the machine. It prints a table and writes
// out/bench.json.
//
// It runs in the root of the repository, as root: `make bench`. BENCH_SECONDS
// says how long it measures, 60 to 540 seconds.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

const (
	outDirectory = "out/bench"
	resultPath   = "out/bench.json"
	agentPath    = "bin/otelcol-rdma"
	workloadPath = "bin/verbsim"
	loopPath     = "bin/bench-loop"
	providerPath = "bin/libverbsim-rdmav34.so"
)

func main() {
	// Children end with the thread that started them; see childAttributes.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	schedule, err := scheduleFrom(os.Getenv("BENCH_SECONDS"))
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("probes cannot be attached without root: run sudo make bench")
	}
	b, err := prepare(schedule, out)
	if err != nil {
		return err
	}
	r := result{Machine: b.machine()}
	for _, part := range []func(context.Context, *result) error{b.measureProbes, b.measureAgent, b.measurePage, b.measureQueues} {
		if err := part(ctx, &r); err != nil {
			return err
		}
	}
	r.Machine.LoadAtEnd = load()
	r.Notes = b.notes
	printTable(out, &r)
	return writeResult(resultPath, &r)
}

// bench is one run of the benchmark.
type bench struct {
	schedule schedule
	// library is the measured copy of the simulated provider: nobody else's
	// file, so that an observer of something else has less reason to be on it.
	library string
	// cpu is where the observed programs run, others what remains for the rest.
	cpu    int
	others []int
	out    io.Writer
	notes  []string
}

func prepare(schedule schedule, out io.Writer) (*bench, error) {
	for _, path := range []string{agentPath, workloadPath, loopPath, providerPath} {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%w: make bench builds it", err)
		}
	}
	if err := os.RemoveAll(outDirectory); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(outDirectory, 0o755); err != nil {
		return nil, err
	}
	library, err := copyLibrary(providerPath, outDirectory)
	if err != nil {
		return nil, err
	}
	b := &bench{schedule: schedule, library: library, out: out}
	if b.cpu, b.others, err = divideProcessors(); err != nil {
		return nil, err
	}
	return b, nil
}

// note keeps what a reader of the numbers has to know, and says it at once.
func (b *bench) note(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	b.notes = append(b.notes, text)
	fmt.Fprintf(b.out, "NOTE: %s\n", text)
}

func (b *bench) progress(format string, arguments ...any) {
	fmt.Fprintf(b.out, "bench: "+format+"\n", arguments...)
}

func copyLibrary(from, directory string) (string, error) {
	contents, err := os.ReadFile(from)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(filepath.Join(directory, "libverbsim-bench.so"))
	if err != nil {
		return "", err
	}
	return to, os.WriteFile(to, contents, 0o755)
}

func writeResult(path string, r *result) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
