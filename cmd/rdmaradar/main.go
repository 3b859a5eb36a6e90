// Command rdmaradar is for the person at a node that runs otelcol-rdma: `rdmaradar top`
// shows its queues live, `rdmaradar doctor` what the machine can observe.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses, besides those of doctor.
const (
	exitFailed = 1
	exitUsage  = 64 // EX_USAGE of sysexits.h.
)

// version is that of the distribution, which scripts/build.sh has the linker set.
var version = "devel"

// exitError is an end with a status of its own; without an error nothing is said.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// failed marks an error of what was tried; all others are of how the command was
// called.
func failed(err error) error {
	if exit := (*exitError)(nil); err == nil || errors.As(err, &exit) {
		return err
	}
	return &exitError{exitFailed, err}
}

// usage marks an error of how the command was called.
func usage(err error) error { return &exitError{exitUsage, err} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)
	stop()
	os.Exit(statusOf(err))
}

// statusOf says what an error has to say.
func statusOf(err error) int {
	if err == nil {
		return 0
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(os.Stderr, "rdmaradar:", text)
	}
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		return exit.status
	}
	return exitUsage
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "rdmaradar",
		Short:         "RDMA queues of this node, seen by otelcol-rdma",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	root.AddCommand(topCommand(), doctorCommand())
	return root
}
