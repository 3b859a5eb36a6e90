package tracer

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// readTimeout is how long records may wait in a ring buffer whose producer
// wakes the reader only for a batch.
const readTimeout = 50 * time.Millisecond

func newReader(m *ebpf.Map) (*ringbuf.Reader, error) { return ringbuf.NewReader(m) }

// readRecords hands every record to the function until the context ends.
func readRecords(ctx context.Context, reader *ringbuf.Reader, handle func(raw []byte)) error {
	defer reader.Close()
	stop := context.AfterFunc(ctx, func() { _ = reader.Close() })
	defer stop()
	var record ringbuf.Record
	for ctx.Err() == nil {
		reader.SetDeadline(time.Now().Add(readTimeout))
		err := reader.ReadInto(&record)
		switch {
		case err == nil:
			handle(record.RawSample)
		case errors.Is(err, ringbuf.ErrClosed):
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
	}
	return nil
}

// noDevice stands for a device whose name could not be read or kept, NO_DEVICE
// of bpf/types.h.
const noDevice = 0xffff

func (t *Tracer) readSlow(ctx context.Context, reader *ringbuf.Reader) {
	err := readRecords(ctx, reader, func(raw []byte) {
		c, err := decodeSlow(raw, t.self)
		if err != nil {
			t.undecodable.Add(1)
			return
		}
		if !t.stamps.hold(c.Completion, c.device, c.stamp) {
			t.deliver(c.Completion, c.device)
		}
	})
	if err != nil {
		t.log.Error("reading slow completions ended", "error", err)
	}
}

// deliver names what the record holds numbers for and passes it on. It never
// waits for the consumer.
func (t *Tracer) deliver(c verbs.Completion, device uint16) {
	if !t.tells(c.Queue.Process) {
		return
	}
	c.Device = t.devices.name(device)
	if c.Device == "" && device != noDevice && t.mu.TryLock() {
		// The first completions of a device may come before anybody asked
		// for its name.
		_ = t.devices.refresh()
		t.mu.Unlock()
		c.Device = t.devices.name(device)
	}
	if !t.takesDevice(c.Device) {
		return
	}
	t.describe(&c.WorkRequest)
	if c.Queue.Process.InKernel() {
		c.Poller = kernelThread(c.Poller)
	}
	switch {
	case c.Poster.TID == c.Poller.TID:
		c.Poster.Name = c.Poller.Name
	case t.cfg.Threshold > 0:
		c.Poster.Name = t.threadName(c.Queue.Process, c.Poster.TID)
	}
	select {
	case t.completions <- c:
	default:
		t.dropped.Add(1)
	}
}
