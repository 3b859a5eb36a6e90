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

// run samples at once, and then in the middle of every interval: at its end, when
// metrics are collected, either could be first.
func (w *deviceWatch) run(stop context.Context) {
	began := time.Now()
	for {
		sample := w.source.Sample()
		w.newest.Store(&sample)
		if !pause(stop, untilMiddle(time.Since(began), w.interval)) {
			return
		}
	}
}

// untilMiddle is the time until the next middle of an interval.
func untilMiddle(passed, interval time.Duration) time.Duration {
	return interval - (passed+interval/2)%interval
}

// latest returns the newest sample, nil before there is one.
func (w *deviceWatch) latest() *fabric.Sample { return w.newest.Load() }
