package rdmareceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
)

// retryDelays are the pauses between the attempts to deliver events. A source
// that watches cannot push back, so after them the events are dropped.
func retryDelays() []time.Duration {
	return []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second}
}

// retry attempts a delivery once more after each delay, for as long as it fails
// in a way that may pass and ctx lets it.
func retry(ctx context.Context, delays []time.Duration, attempt func() error) error {
	for _, delay := range delays {
		err := attempt()
		if err == nil || consumererror.IsPermanent(err) || !pause(ctx, delay) {
			return err
		}
	}
	return attempt()
}

// pause waits, and reports whether ctx let it.
func pause(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
