package top

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

const (
	// viewEvery is how often a collector sends a view.
	viewEvery = time.Second
	// againAfter is when a collector that has ended is asked again.
	againAfter = time.Second
)

// LiveOptions are those of a live table.
type LiveOptions struct {
	Options
	// Delay is the time between two views that are shown, Times how many are shown, 0 for
	// no end.
	Delay time.Duration
	Times int
}

// Collector is who shows a node.
type Collector interface {
	// Where names it.
	Where() string
	// View returns the present view, Watch one each second.
	View(context.Context) (radar.View, error)
	Watch(context.Context, func(radar.View) error) error
}

// Live shows a table on the terminal until its user, or the context, ends it, or the
// terminal is gone.
func Live(ctx context.Context, from Collector, o LiveOptions) error {
	// Where none answers, that is to stand in the shell when this has ended.
	if _, err := from.View(ctx); err != nil {
		return err
	}
	m, err := newModel(from.Where(), o, time.Now, time.Local)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithFilter(bounded))
	var besides sync.WaitGroup
	besides.Go(func() { feed(ctx, from, o.Delay, program.Send) })
	besides.Go(func() { untilGone(ctx, end, os.Stdin, os.Stdout) })
	_, err = program.Run()
	gone := ctx.Err() != nil
	end()
	besides.Wait()
	if gone && errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// feed sends views, and what keeps them from coming, until the context ends.
func feed(ctx context.Context, from Collector, delay time.Duration, send func(tea.Msg)) {
	var last time.Time
	for ctx.Err() == nil {
		err := from.Watch(ctx, func(view radar.View) error {
			// The stream has a beat of its own: what is due within half of it is due.
			if now := time.Now(); now.Sub(last) >= delay-viewEvery/2 {
				last = now
				send(viewMsg{&view})
			}
			return nil
		})
		if ctx.Err() != nil {
			return
		}
		send(lostMsg{err})
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}
