package top

import (
	"context"
	"errors"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// recorded is a collector that sends views and ends, again and again.
type recorded struct{ views int }

func (recorded) Where() string { return "recorded" }
func (recorded) View(context.Context) (radar.View, error) {
	return radar.View{}, errors.New("no collector answers")
}

func (r recorded) Watch(_ context.Context, each func(radar.View) error) error {
	for range r.views {
		if err := each(radar.View{}); err != nil {
			return err
		}
	}
	return errors.New("ended")
}

func TestFeed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	views, lost := 0, 0
	feed(ctx, recorded{views: 5}, time.Hour, func(message tea.Msg) {
		switch message.(type) {
		case viewMsg:
			views++
		case lostMsg:
			if lost++; lost == 2 {
				cancel()
			}
		}
	})
	assert.Equal(t, 1, views, "one within the delay")
	assert.Equal(t, 2, lost, "a collector that has ended is asked again")
}

// Without a collector the reason stands in the shell.
func TestLiveWithoutCollector(t *testing.T) {
	assert.ErrorContains(t, Live(t.Context(), recorded{}, LiveOptions{Options: Options{Sort: "trouble"}}), "no collector answers")
}
