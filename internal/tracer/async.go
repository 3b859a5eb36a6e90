package tracer

import (
	"context"
	"sync"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// asyncBuffer is how many events wait for a slow consumer before the newest are
// dropped and counted.
const asyncBuffer = 256

// Async delivers asynchronous events of devices, and of QPs and CQs of traced
// processes, at once. It is closed by Close.
func (t *Tracer) Async() <-chan verbs.AsyncEvent { return t.async }

func decodeAsync(raw []byte) (verbs.AsyncEvent, error) {
	var event bpf.ResourcesAsyncEvent
	if err := decodeInto(&event, raw); err != nil {
		return verbs.AsyncEvent{}, err
	}
	return verbs.AsyncEvent{
		Monotonic: event.TimeNs,
		Type:      verbs.AsyncEventType(event.Event),
		Device:    commName(event.Device.Name[:]),
		Port:      event.Port,
		Process:   verbs.ProcessID{TGID: event.Tgid, Incarnation: event.Incarnation},
		QPNumber:  event.QpNum,
		CQNumber:  event.CqNumber,
		HasQP:     event.HasQp != 0,
		HasCQ:     event.HasCq != 0,
	}, nil
}

// readAsync reads the events of the present probes until stop is called.
func (t *Tracer) readAsync(ctx context.Context) (stop func()) {
	events := t.resources.events()
	if events == nil {
		return func() {}
	}
	reader, err := newReader(events)
	if err != nil {
		t.log.Warn("asynchronous events are not seen", "error", err)
		return func() {}
	}
	reading, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		t.meter.run(func() {
			if err := readRecords(reading, reader, t.deliverAsync); err != nil {
				t.log.Error("reading asynchronous events ended", "error", err)
			}
		})
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// deliverAsync passes an event on if its device and process are traced. It
// never waits for the consumer.
func (t *Tracer) deliverAsync(raw []byte) {
	event, err := decodeAsync(raw)
	if err != nil {
		t.undecodable.Add(1)
		return
	}
	if !t.cfg.TakesDevice(event.Device) {
		return
	}
	if tgid := event.Process.TGID; tgid != 0 {
		t.cfg.NewProcess(event.Process, "")
		if !t.traces(event.Process) {
			return
		}
	}
	select {
	case t.async <- event:
	default:
		t.dropped.Add(1)
	}
}

// traces asks about a process of which nobody has asked: one without a queue yet.
func (t *Tracer) traces(id verbs.ProcessID) bool {
	if taken, known := t.choices.of(id); known {
		return taken
	}
	return t.cfg.TakesProcess(int(id.TGID))
}
