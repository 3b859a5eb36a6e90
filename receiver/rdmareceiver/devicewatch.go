package rdmareceiver

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

// deviceSource samples the RDMA devices of the host.
type deviceSource interface {
	Sample() fabric.Sample
}

// deviceWatch samples the devices regularly, apart from everything else: reading
// a counter may wait for the firmware of a NIC that is stuck.
type deviceWatch struct {
	source   deviceSource
	interval time.Duration
	newest   atomic.Pointer[fabric.Sample]
}

// run samples at once, and then every interval.
func (w *deviceWatch) run(stop context.Context) {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		sample := w.source.Sample()
		w.newest.Store(&sample)
		select {
		case <-tick.C:
		case <-stop.Done():
			return
		}
	}
}

// latest returns the newest sample, nil before there is one.
func (w *deviceWatch) latest() *fabric.Sample { return w.newest.Load() }
