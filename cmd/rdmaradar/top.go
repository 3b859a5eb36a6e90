package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaradar/rdmaradar/cmd/rdmaradar/internal/top"
	"github.com/rdmaradar/rdmaradar/internal/radar"
	"github.com/rdmaradar/rdmaradar/internal/radarclient"
)

// leastDelay is how often a collector looks at its queues.
const leastDelay = time.Second

// topFlags are the flags of top.
type topFlags struct {
	where  collectorFlags
	rows   top.Options
	once   bool
	output string
	delay  float64
	times  int
}

// collectorFlags say which collector to ask.
type collectorFlags struct{ socket, url string }

func (f *collectorFlags) add(to *cobra.Command) {
	to.Flags().StringVar(&f.socket, "socket", radar.Socket, "socket of the collector, its key socket of rdma_radar")
	to.Flags().StringVar(&f.url, "url", "", "address of the radar page, with its token, in place of the socket")
	to.MarkFlagsMutuallyExclusive("socket", "url")
}

func (f *collectorFlags) client() (*radarclient.Client, error) {
	switch {
	case f.url == "" && f.socket == "":
		return nil, usage(errors.New("--socket is empty: set it to the key socket of rdma_radar, or leave it out"))
	case f.url == "":
		return radarclient.OnSocket(f.socket), nil
	}
	client, err := radarclient.AtURL(f.url)
	if err != nil {
		return nil, usage(err)
	}
	return client, nil
}

func topCommand() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the queues of this node live, the worst first",
		Long: `Shows the queues of this node live, the worst first, with the open incidents above.

The collector is asked on its socket, which is for root, its own user and its group.
h lists the keys.

Exit status: 0, 1 when no collector answers or, with --once, when nothing is traced,
64 when it is called wrongly.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return failed(f.run(cmd.Context(), cmd.OutOrStdout())) },
	}
	f.where.add(cmd)
	cmd.Flags().StringVar(&f.rows.Sort, "sort", "trouble", "order: "+top.Orders())
	cmd.Flags().BoolVarP(&f.rows.Reverse, "reverse", "r", false, "turn the order round")
	cmd.Flags().StringVarP(&f.rows.Filter, "filter", "f", "", `queues, and their incidents, that have each of these words, such as "mlx5_3 rank:7"`)
	cmd.Flags().BoolVar(&f.once, "once", false, "print the present state and end")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "with --once: table or json")
	cmd.Flags().Float64VarP(&f.delay, "delay", "d", 1, "seconds between two looks, 1 or more")
	cmd.Flags().IntVarP(&f.times, "iterations", "n", 0, "looks after which to end, 0 for no end")
	return cmd
}

// noArguments names what is too much.
func noArguments(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return usage(fmt.Errorf("unknown argument %q", arguments[0]))
	}
	return nil
}

func (f *topFlags) check() error {
	delay := time.Duration(f.delay * float64(time.Second))
	switch {
	case f.output != "table" && f.output != "json":
		return fmt.Errorf("--output is %q: set it to table or json", f.output)
	case f.output == "json" && !f.once:
		return errors.New("--output json goes with --once")
	case delay < leastDelay || f.delay > 3600:
		return fmt.Errorf("--delay is %g: set it to seconds from 1, at which the collector looks at its queues, to 3600", f.delay)
	case f.times < 0:
		return fmt.Errorf("--iterations is %d: set it to 0 or more", f.times)
	}
	return f.rows.Check()
}

func (f *topFlags) run(ctx context.Context, out io.Writer) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	client, err := f.where.client()
	if err != nil {
		return err
	}
	if f.once {
		return f.runOnce(ctx, client, out)
	}
	if err := top.CheckTerminal(os.Stdin, os.Stdout, os.Getenv("TERM")); err != nil {
		return usage(err)
	}
	return top.Live(ctx, client, top.LiveOptions{
		Options: f.rows, Delay: time.Duration(f.delay * float64(time.Second)), Times: f.times,
	})
}

// runOnce prints what can be seen. Where that is nothing the error has the reason, and a
// table would have no more; a script gets its document.
func (f *topFlags) runOnce(ctx context.Context, client *radarclient.Client, out io.Writer) error {
	view, err := client.View(ctx)
	if err != nil {
		return err
	}
	blind := top.Blind(&view)
	switch {
	case f.output == "json":
		err = top.WriteJSON(out, &view, f.rows)
	case blind == nil:
		err = top.WriteTable(out, &view, f.rows, time.Local)
	}
	return cmp.Or(err, blind)
}
