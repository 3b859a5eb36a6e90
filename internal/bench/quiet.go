package main

import (
	"context"
	"time"
)

// waiting is what is left of the patience with other observers.
type waiting struct {
	left  time.Duration
	noted bool
}

// awaitQuiet returns when nobody else observes the measured library. When they
// do not go away in time, it says so and measures all the same.
func (b *bench) awaitQuiet(ctx context.Context, w *waiting) error {
	for {
		places, err := placesOn(b.library, self)
		if err != nil {
			return err
		}
		if !foreign(places) {
			return nil
		}
		if w.left <= 0 {
			if !w.noted {
				w.noted = true
				b.note("another observer was on the measured library and stayed: the numbers hold its cost as well")
			}
			return nil
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		w.left -= 100 * time.Millisecond
	}
}

// watchForeign looks for observers other than a process until the returned
// function is called, which says whether there was one.
func (b *bench) watchForeign(observer string) func() bool {
	stop, seen := make(chan struct{}), make(chan bool)
	look := func() bool {
		places, err := placesOn(b.library, observer)
		return err == nil && foreign(places)
	}
	go func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		found := false
		for {
			select {
			case <-stop:
				seen <- found || look()
				return
			case <-ticker.C:
				found = found || look()
			}
		}
	}()
	return func() bool {
		close(stop)
		return <-seen
	}
}
