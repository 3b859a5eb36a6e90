package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"
)

// The states of the radar page that are compared.
const (
	pageAbsent  = "no page"
	pageIdle    = "a page, nobody looks"
	pageWatched = "a page, one looks"
)

var pageStates = []string{pageAbsent, pageIdle, pageWatched}

const (
	// pageQueues is for how many queue pairs the page is measured: as many as are followed.
	pageQueues    = 4096
	pageExtension = "rdma_radar"
)

// measurePage watches an agent without the page, and one with it while nobody looks and
// while one does.
func (b *bench) measurePage(ctx context.Context, r *result) error {
	s := b.schedule.page
	b.progress("the radar page with %d queue pairs: %d states, %d times %s each", pageQueues, len(pageStates), s.repeats, s.window)
	b.noteWindow(s.window)
	measured := map[string][]float64{}
	for round := range s.repeats {
		// Each is first once: what changes with time counts for all alike.
		orders := [][]string{{pageAbsent}, {pageIdle, pageWatched}}
		if round%2 == 1 {
			orders = [][]string{{pageWatched, pageIdle}, {pageAbsent}}
		}
		for _, states := range orders {
			if err := b.watchPage(ctx, states, measured); err != nil {
				return fmt.Errorf("the radar page: %w", err)
			}
		}
	}
	for _, state := range pageStates {
		r.Page = append(r.Page, pageResult{State: state, QPs: pageQueues, CPUCores: median(measured[state])})
	}
	return nil
}

// watchPage watches one agent in states that are of the same configuration.
func (b *bench) watchPage(ctx context.Context, states []string, measured map[string][]float64) error {
	root, err := makeRoot()
	if err != nil {
		return err
	}
	extension := pageExtension
	if slices.Contains(states, pageAbsent) {
		extension = ""
	}
	a, err := b.startAgent(ctx, root, extension)
	if err != nil {
		return err
	}
	queues, err := b.startQueues(ctx, pageQueues, "--sysroot", root, "--device", "bench0")
	if err != nil {
		return errors.Join(err, a.close())
	}
	// The first collection, and what is done once for new queues, is in none of them.
	err = sleep(ctx, b.schedule.page.window)
	for _, state := range states {
		if err == nil {
			err = b.watchState(ctx, a, state, measured)
		}
	}
	return errors.Join(err, queues.end(), a.close())
}

func (b *bench) watchState(ctx context.Context, a *agent, state string, measured map[string][]float64) error {
	looked := func() error { return nil }
	if state == pageWatched {
		v, err := a.look(ctx)
		if err != nil {
			return err
		}
		looked = v.close
	}
	one, err := watch(ctx, a.command.Process.Pid, b.schedule.page.window)
	measured[state] = append(measured[state], one.CPUCores)
	return errors.Join(err, looked())
}

// viewer is one who looks at the page, as the page does: it is sent a view each second.
type viewer struct {
	body io.Closer
	// seen is how many bytes were sent until the stream ended.
	seen chan int64
}

// pageAddress is where the log says that the page is.
var pageAddress = regexp.MustCompile(`"url": *"(http://[^"]+)"`)

func (a *agent) look(ctx context.Context) (*viewer, error) {
	log, err := os.ReadFile(a.log)
	if err != nil {
		return nil, err
	}
	address := pageAddress.FindSubmatch(log)
	if address == nil {
		return nil, fmt.Errorf("%s does not say where the page is", a.log)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, string(address[1])+"events", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("the page answers %s", response.Status), response.Body.Close())
	}
	v := &viewer{body: response.Body, seen: make(chan int64, 1)}
	go func() {
		// The stream ends with an error: it is closed while it is read.
		n, _ := io.Copy(io.Discard, response.Body)
		v.seen <- n
	}()
	return v, nil
}

// close is an error where the page did not show all queues again and again.
func (v *viewer) close() error {
	err := v.body.Close()
	// A queue takes far more than that in a view, of which each second has one.
	const least = 2 * pageQueues * 100
	select {
	case n := <-v.seen:
		if n < least {
			err = errors.Join(err, fmt.Errorf("the page sent %d bytes of %d queue pairs, expected at least %d", n, pageQueues, least))
		}
	case <-time.After(stopGrace):
		err = errors.Join(err, fmt.Errorf("the stream of the page did not end within %s", stopGrace))
	}
	return err
}
