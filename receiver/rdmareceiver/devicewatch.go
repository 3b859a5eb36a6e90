package rdmareceiver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/fabric"
)

const (
	// minSampling is the least time between two samples: on some NICs each counter
	// is a command to the firmware.
	minSampling = time.Second
	// maxSamples is how many are kept, to find those around a burst.
	maxSamples = 24
)

// deviceSource samples the RDMA devices of the host.
type deviceSource interface {
	Sample() fabric.Sample
}

// deviceWatch samples the devices regularly, and more often while something is
// slow, apart from everything else: reading a counter may wait for the firmware
// of a NIC that is stuck. It is safe for concurrent use.
type deviceWatch struct {
	source   deviceSource
	interval time.Duration
	// monotonic is the present moment on CLOCK_MONOTONIC, in nanoseconds.
	monotonic func() uint64
	// asked holds a wish for a sample.
	asked chan struct{}

	mu sync.Mutex
	// newest is the newest of the regular samples.
	newest *fabric.Sample
	// recent are the newest of all, the oldest first.
	recent []timedSample
	// changed is closed when there is one more.
	changed chan struct{}
}

// timedSample is a sample that was read from one moment to another.
type timedSample struct {
	sample      *fabric.Sample
	from, until uint64
}

func newDeviceWatch(source deviceSource, interval time.Duration, monotonic func() uint64) *deviceWatch {
	return &deviceWatch{
		source: source, interval: interval, monotonic: monotonic,
		asked: make(chan struct{}, 1), changed: make(chan struct{}),
	}
}

// run samples at once, and then in the middle of every interval: at its end, when
// metrics are collected, either could be first. It samples as soon as it may when
// it is asked to.
func (w *deviceWatch) run(stop context.Context) {
	began := time.Now()
	next := began
	for {
		at := time.Now()
		regular := !at.Before(next)
		w.sample(regular)
		if regular {
			next = time.Now().Add(untilMiddle(time.Since(began), w.interval))
		}
		if !w.sleep(stop, next, at.Add(minSampling)) {
			return
		}
	}
}

// sleep waits for the next regular sample or for a wish, and not less than until
// the earliest moment.
func (w *deviceWatch) sleep(stop context.Context, next, earliest time.Time) bool {
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.asked:
	case <-stop.Done():
		return false
	}
	return pause(stop, time.Until(earliest))
}

func (w *deviceWatch) sample(regular bool) {
	from := w.monotonic()
	sample := w.source.Sample()
	until := w.monotonic()
	w.mu.Lock()
	defer w.mu.Unlock()
	if regular {
		w.newest = &sample
	}
	if len(w.recent) == maxSamples {
		w.recent = slices.Delete(w.recent, 0, 1)
	}
	w.recent = append(w.recent, timedSample{sample: &sample, from: from, until: until})
	close(w.changed)
	w.changed = make(chan struct{})
}

// untilMiddle is the time until the next middle of an interval.
func untilMiddle(passed, interval time.Duration) time.Duration {
	return interval - (passed+interval/2)%interval
}

// want asks for a sample.
func (w *deviceWatch) want() {
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

// latest returns the newest regular sample, nil before there is one.
func (w *deviceWatch) latest() *fabric.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest
}

// await waits for a sample that was begun after a moment, or for the end of the
// context.
func (w *deviceWatch) await(ctx context.Context, after uint64) {
	for {
		w.mu.Lock()
		n, changed := len(w.recent), w.changed
		there := n > 0 && w.recent[n-1].from >= after
		w.mu.Unlock()
		if there {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// around returns the last sample that was read before an interval, and the first
// that was begun after it. Either is nil when there is none. last is the newest of
// all.
func (w *deviceWatch) around(start, end uint64) (before, after, last *fabric.Sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.recent {
		last = s.sample
		if s.until <= start {
			before = s.sample
		}
		if after == nil && s.from >= end {
			after = s.sample
		}
	}
	return before, after, last
}
