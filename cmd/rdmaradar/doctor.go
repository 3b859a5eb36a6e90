package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaradar/rdmaradar/internal/doctor"
)

const (
	// diagnosis is how long all checks together may take: a look at every process, and the
	// analysis of every provider, on a busy machine.
	diagnosis = 2 * time.Minute
	// healthLimit is how long a scheduler's prolog has to wait at the most, what it takes
	// to start and to end left out.
	healthLimit = 1800 * time.Millisecond
)

// The exit statuses of doctor.
const (
	exitWarnings = 1
	exitProblems = 2
	// exitUnhealthy is that of --node-health.
	exitUnhealthy = 1
)

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	where  collectorFlags
	output string
	health bool
}

func doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can observe, what is odd about it, and what to do",
		Long: `Says what this machine can observe, what is odd about it, and what to do.

Where no collector traces, root has the programs loaded and tried on a child of the
command's own. Without root it says what it could not look at.

Exit status: 0 all is well, 1 there are warnings or something could not be looked at,
2 this node cannot be observed, 64 it is called wrongly. With --node-health: 0 healthy,
1 not.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return failed(f.run(cmd.Context(), cmd.OutOrStdout())) },
	}
	f.where.add(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	cmd.Flags().BoolVar(&f.health, "node-health", false, "say in one line and the exit status whether devices, ports and PCIe links are well; ends within 2 s")
	return cmd
}

func (f *doctorFlags) run(ctx context.Context, out io.Writer) error {
	switch {
	case f.output != "text" && f.output != "json":
		return usage(fmt.Errorf("--output is %q: set it to text or json", f.output))
	case f.output == "json" && f.health:
		return usage(errors.New("--node-health prints one line of text: leave --output out"))
	}
	client, err := f.where.client()
	if err != nil {
		return err
	}
	limit := diagnosis
	if f.health {
		limit = healthLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	system := doctor.New(ctx, client)
	if f.health {
		return tellHealth(ctx, system, out)
	}
	report := system.Diagnose(ctx)
	write := doctor.WriteText
	if f.output == "json" {
		write = doctor.WriteJSON
	}
	if err := write(out, &report); err != nil {
		return err
	}
	return ending(report.Worst)
}

func tellHealth(ctx context.Context, system *doctor.System, out io.Writer) error {
	health := system.CheckHealth(ctx)
	if err := doctor.WriteHealth(out, &health); err != nil {
		return err
	}
	if !health.Healthy() {
		return &exitError{status: exitUnhealthy}
	}
	return nil
}

// ending is the exit status of a report. The report has said why.
func ending(level doctor.Level) error {
	switch level {
	case doctor.OK, doctor.Note:
		return nil
	case doctor.Problem:
		return &exitError{status: exitProblems}
	default:
		return &exitError{status: exitWarnings}
	}
}
