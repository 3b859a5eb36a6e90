package rdmaradarextension

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

const (
	// viewEvery is how often a view is sent.
	viewEvery = time.Second
	// viewLasts is how old a view may be that is sent to one more viewer.
	viewLasts = viewEvery / 2
	// overlap is how far back the columns of a view go, so that a viewer who missed
	// some views has no gap.
	overlap = 20 * time.Second
	// writeLimit is how long one view may take to be sent.
	writeLimit = 10 * time.Second
	// maxViewers bounds the streams at once, and the single views: of 30,000 queues one has
	// 10 MiB, which are held until a slow reader has them.
	maxViewers = 16
)

// source makes views and streams them. It is safe for concurrent use.
type source struct {
	// current is the state that is shown, nil when there is none.
	current func() *radar.State
	// closing ends the streams.
	closing <-chan struct{}
	// places has one for each stream, views one for each single view.
	places, views chan struct{}

	mu   sync.Mutex
	made time.Time
	of   *radar.State
	// message is the view that was made last, as an event of a stream.
	message []byte
}

func newSource(current func() *radar.State, closing <-chan struct{}) *source {
	return &source{current: current, closing: closing, places: make(chan struct{}, maxViewers), views: make(chan struct{}, maxViewers)}
}

// view is the view of a state, which may be nil.
func view(state *radar.State, now time.Time, since int64) radar.View {
	if state == nil {
		return radar.NoView(now)
	}
	return state.View(now, since)
}

// serveView answers with the view of this moment, all of it.
func (s *source) serveView(w http.ResponseWriter, r *http.Request) {
	if !take(s.views, w) {
		return
	}
	defer func() { <-s.views }()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodHead {
		return
	}
	// An error is one of the connection: nobody is there to be told.
	_ = json.NewEncoder(w).Encode(view(s.current(), time.Now(), 0))
}

// serveEvents sends a view each second, as server-sent events.
func (s *source) serveEvents(w http.ResponseWriter, r *http.Request) {
	if !take(s.places, w) {
		return
	}
	defer func() { <-s.places }()
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	stream := &stream{to: w, control: http.NewResponseController(w)}
	defer stream.end()
	tick := time.NewTicker(viewEvery)
	defer tick.Stop()
	for {
		if err := s.send(stream); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
}

// take takes a place, and says so where there is none.
func take(places chan struct{}, w http.ResponseWriter) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		http.Error(w, "too many look at this page already: close one", http.StatusServiceUnavailable)
		return false
	}
}

// send sends the whole state first, and again when another one is shown, and then
// what is new.
func (s *source) send(to *stream) error {
	state, now := s.current(), time.Now()
	if to.begun && to.state == state {
		message, err := s.latest(state, now)
		if err != nil {
			return err
		}
		return to.write(message)
	}
	to.watch(state)
	message, err := eventOf(view(state, now, 0))
	if err != nil {
		return err
	}
	return to.write(message)
}

// latest is the view that all streams get; it is made once for all of them.
func (s *source) latest(state *radar.State, now time.Time) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == state && s.message != nil && now.Sub(s.made) < viewLasts {
		return s.message, nil
	}
	message, err := eventOf(view(state, now, now.Add(-overlap).UnixMilli()))
	if err != nil {
		return nil, err
	}
	s.made, s.of, s.message = now, state, message
	return message, nil
}

// eventOf is a view as an event. JSON has no line breaks in it.
func eventOf(v radar.View) ([]byte, error) {
	var event bytes.Buffer
	event.WriteString("event: view\ndata: ")
	if err := json.NewEncoder(&event).Encode(v); err != nil {
		return nil, err
	}
	event.WriteString("\n")
	return event.Bytes(), nil
}

// stream is one viewer.
type stream struct {
	to      http.ResponseWriter
	control *http.ResponseController
	// state is the one that is watched until unwatch is called.
	state   *radar.State
	unwatch func()
	begun   bool
}

func (s *stream) watch(state *radar.State) {
	s.end()
	s.begun, s.state = true, state
	if state != nil {
		s.unwatch = state.Watch()
	}
}

func (s *stream) end() {
	if s.unwatch != nil {
		s.unwatch()
	}
	s.unwatch = nil
}

// write sends one event. The server's limit on writing is one on the whole of a
// response, which here has no end, so each event has its own.
func (s *stream) write(event []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	if _, err := s.to.Write(event); err != nil {
		return err
	}
	return s.control.Flush()
}
