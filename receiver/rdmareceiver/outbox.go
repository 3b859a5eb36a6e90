package rdmareceiver

import (
	"context"
)

// outcome is what became of a batch.
type outcome string

const (
	outcomeExported  outcome = "exported"
	outcomeQueueFull outcome = "queue_full"
	outcomeRefused   outcome = "refused"
)

// outbox stands between the reading of events and a pipeline: batches wait in a
// bounded queue, one goroutine delivers them, and who fills it never waits.
type outbox[B any] struct {
	queue chan B
	// deliver hands a batch to the pipeline.
	deliver func(context.Context, B) error
	// settled is told what became of each batch.
	settled func(B, outcome)
}

func newOutbox[B any](size int, deliver func(context.Context, B) error, settled func(B, outcome)) *outbox[B] {
	return &outbox[B]{queue: make(chan B, size), deliver: deliver, settled: settled}
}

// put queues a batch, or drops it when the queue is full, and says whether it did the
// former. It never waits.
func (o *outbox[B]) put(batch B) (queued bool) {
	select {
	case o.queue <- batch:
		return true
	default:
		o.settled(batch, outcomeQueueFull)
		return false
	}
}

// close lets run end once the queue is empty. There must be no put after it.
func (o *outbox[B]) close() { close(o.queue) }

// run delivers until close, each batch once.
func (o *outbox[B]) run(ctx context.Context) {
	for batch := range o.queue {
		if err := o.deliver(ctx, batch); err != nil {
			o.settled(batch, outcomeRefused)
			continue
		}
		o.settled(batch, outcomeExported)
	}
}
