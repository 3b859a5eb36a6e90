package suite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaradar/rdmaradar/internal/lab/otlp"
)

// rdsModule is the service of RDS: the module's name.
const rdsModule = "rds_rdma"

// rdsHandlers are called once for each completion that RDS polled.
var rdsHandlers = []string{"rds_ib_send_cqe_handler", "rds_ib_recv_cqe_handler", "rds_ib_mr_cqe_handler"}

// rdsIsSeen sends datagrams over RDS, which polls its CQs itself: the witness is its
// own handlers of completions. The module stays: on Linux 6.12 the end of its
// connections never comes. So this is the last test, with the collector that is there.
func rdsIsSeen(ctx context.Context, g *Guest) (string, error) {
	c, err := g.collectorAtHand(ctx)
	if err != nil {
		return "", err
	}
	if err := runLines(ctx, "modprobe "+rdsModule); err != nil {
		return "", err
	}
	w, err := startWitnessOf(rdsHandlers...)
	if err != nil {
		return "", err
	}
	const datagrams = 100
	_, err = run(ctx, g.share+"/rds", clientAddress, serverAddress, fmt.Sprint(datagrams), "1000")
	// Acknowledgements follow the last datagram.
	err = errors.Join(err, pause(ctx, interval))
	hits, errHits := w.hits()
	if err := errors.Join(err, errHits, w.stop()); err != nil {
		return "", err
	}
	polled := uint64(0)
	for _, n := range hits {
		polled += n
	}
	if err := c.consumersSettle(ctx, polled, rdsModule); err != nil {
		return "", err
	}
	sends := completionsOf(rdsModule, "", "send")
	delete(sends.Attributes, "rdma.device.name")
	h := c.histogram(otlp.Match{Service: rdsModule, Metric: "rdma.wqe.duration"})
	if n := c.total(sends); n < 2*datagrams || h.Count == 0 {
		return "", fmt.Errorf("%.0f sends for %d datagrams, %d timed", n, 2*datagrams, h.Count)
	}
	return fmt.Sprintf("%d completions, as RDS polled; %.0f sends, %d timed", polled, c.total(sends), h.Count), c.balance(ctx)
}
