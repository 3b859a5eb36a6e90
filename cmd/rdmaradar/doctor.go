package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaradar/rdmaradar/internal/doctor"
)

// diagnosis is how long all checks together may take: a look at every process, and the
// analysis of every provider, on a busy machine.
const diagnosis = 2 * time.Minute

// The exit statuses of doctor.
const (
	exitWarnings = 1
	exitProblems = 2
)

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	where  collectorFlags
	output string
	health bool
	// least is how many RDMA devices a healthy node has at the least.
	least int
	// look is set in the process that looks at the health.
	look bool
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
1 not, 2 nothing was seen of it, without a line.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return failed(f.run(cmd.Context(), cmd.OutOrStdout())) },
	}
	f.where.add(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	cmd.Flags().BoolVar(&f.health, "node-health", false, "say in one line and the exit status whether devices, ports and PCIe links are well; ends within 2 s")
	cmd.Flags().IntVar(&f.least, "devices", 0, "with --node-health: RDMA devices that the node has; with fewer it is not healthy")
	cmd.Flags().BoolVar(&f.look, lookFlag, false, "")
	_ = cmd.Flags().MarkHidden(lookFlag) // There is such a flag.
	return cmd
}

// lookFlag is that of the process that --node-health starts.
const lookFlag = "look"

func (f *doctorFlags) check() error {
	switch {
	case f.output != "text" && f.output != "json":
		return fmt.Errorf("--output is %q: set it to text or json", f.output)
	case f.output == "json" && f.health:
		return errors.New("--node-health prints one line of text: leave --output out")
	case f.least < 0:
		return fmt.Errorf("--devices is %d: set it to 0 or more", f.least)
	case f.least > 0 && !f.health && !f.look:
		return errors.New("--devices goes with --node-health")
	}
	return nil
}

func (f *doctorFlags) run(ctx context.Context, out io.Writer) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	client, err := f.where.client()
	if err != nil {
		return err
	}
	switch {
	case f.look:
		return lookAtHealth(ctx, client, f.least, out)
	case f.health:
		hurry()
		return nodeHealth(ctx, f.lookCommand(), out)
	}
	ctx, cancel := context.WithTimeout(ctx, diagnosis)
	defer cancel()
	report := doctor.New(ctx, client).Diagnose(ctx)
	write := doctor.WriteText
	if f.output == "json" {
		write = doctor.WriteJSON
	}
	if err := write(out, &report); err != nil {
		return err
	}
	return ending(report.Worst)
}

// lookCommand is this command, to look at the health itself.
func (f *doctorFlags) lookCommand() *exec.Cmd {
	where := []string{"--socket", f.where.socket}
	if f.where.url != "" {
		where = []string{"--url", f.where.url}
	}
	arguments := append([]string{"doctor", "--" + lookFlag, "--devices", strconv.Itoa(f.least)}, where...)
	return exec.Command("/proc/self/exe", arguments...)
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
