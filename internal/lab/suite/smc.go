package suite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

// smcModule is the service of SMC: the module's name.
const smcModule = "smc"

// smcCannot says why a kernel cannot run SMC-R over soft-RoCE, nil where it can.
func smcCannot(ctx context.Context) error {
	if _, err := run(ctx, "modinfo", smcModule); err != nil {
		return skipError("this kernel is built without SMC: it has no module smc")
	}
	// It was tried on 6.1: the first registration of memory completes, and SMC ends the
	// link, whose cleanup then waits for ever.
	tells, err := kernelSince(6, 12)
	if err == nil && !tells {
		return skipError("the soft-RoCE of this kernel leaves cur_qp_state out of what ib_query_qp returns, and SMC sends nothing on a queue pair that is not known to be in RTS (smc_link_sendable in net/smc/smc_core.h)")
	}
	return err
}

// smcIsSeen sends messages over SMC-R, which polls its CQs itself: the witness is the
// driver, where nothing else completes work meanwhile. The module stays, with the link
// that it keeps for the next connection, so that this is one of the last tests.
func smcIsSeen(ctx context.Context, g *Guest) (string, error) {
	if err := smcCannot(ctx); err != nil {
		return "", err
	}
	c, err := g.collectorAtHand(ctx)
	if err != nil {
		return "", err
	}
	if err := runLines(ctx, "modprobe "+smcModule); err != nil {
		return "", err
	}
	if err := configureSMC(); err != nil {
		return "", err
	}
	w, err := startWitnessOf(witnessCompletions)
	if err != nil {
		return "", err
	}
	const messages = 100
	_, err = run(ctx, g.share+"/smc", clientAddress, serverAddress, fmt.Sprint(messages), "1000")
	// The end of the connection is told to the peer.
	err = errors.Join(err, pause(ctx, interval))
	hits, errHits := w.hits()
	if err := errors.Join(err, errHits, w.stop()); err != nil {
		return "", err
	}
	polled := hits[witnessCompletions]
	if err := c.consumersSettle(ctx, polled, smcModule); err != nil {
		return "", err
	}
	sends := completionsOf(smcModule, "", "send")
	delete(sends.Attributes, "rdma.device.name")
	h := c.histogram(otlp.Match{Service: smcModule, Metric: "rdma.wqe.duration"})
	if n := c.total(sends); n < 2*messages || h.Count == 0 {
		return "", fmt.Errorf("%.0f sends for %d messages, %d timed", n, 2*messages, h.Count)
	}
	return fmt.Sprintf("%d completions, as the driver made; %.0f sends, %d timed", polled, c.total(sends), h.Count), c.balance(ctx)
}
