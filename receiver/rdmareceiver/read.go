package rdmareceiver

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// reader is the state of reading the channels of the engine.
type reader struct {
	completions <-chan verbs.Completion
	stuck       <-chan verbs.Stuck
	async       <-chan verbs.AsyncEvent
	// pending are the stuck sends of the window that are told, told counts its
	// asynchronous events.
	pending []verbs.Stuck
	told    int
	// began is when the window did.
	began uint64
	// ended is set when the last window that is judged has ended.
	ended bool
}

// read empties the channels of the engine. It does nothing that can wait until it
// ends.
func (s *session) read(stop context.Context) {
	defer close(s.windows)
	defer close(s.asyncs)
	defer s.floors.close()
	tick := time.NewTicker(selectionWindow)
	defer tick.Stop()
	r := &reader{completions: s.engine.Completions(), stuck: s.engine.Stuck(), async: s.engine.Async(), began: s.monotonic()}
	stopped := stop.Done()
	for r.completions != nil || r.stuck != nil || r.async != nil {
		select {
		case c, ok := <-r.completions:
			s.takeCompletion(r, c, ok)
		case u, ok := <-r.stuck:
			s.takeStuck(r, u, ok)
		case e, ok := <-r.async:
			s.takeAsync(r, e, ok)
		case <-tick.C:
			s.endWindow(r)
		case <-stopped:
			stopped = nil
			s.endLast(r)
		}
	}
	s.endWindow(r)
}

// endLast takes what has been delivered by now, and ends the last window that is
// judged.
func (s *session) endLast(r *reader) {
	for more := true; more; {
		select {
		case c, ok := <-r.completions:
			s.takeCompletion(r, c, ok)
		case u, ok := <-r.stuck:
			s.takeStuck(r, u, ok)
		default:
			more = false
		}
	}
	s.endWindowAs(r, true)
	r.ended = true
}

func (s *session) takeCompletion(r *reader, c verbs.Completion, ok bool) {
	if !ok {
		r.completions = nil
		return
	}
	s.host.processes.Capture(c.Queue.Process, "")
	s.holder.hold(&c)
	s.selector.offer(c)
}

// takeStuck keeps as many stuck sends a window as a burst of spans: when a whole
// job hangs, a few of its requests tell as much as all.
func (s *session) takeStuck(r *reader, u verbs.Stuck, ok bool) {
	if !ok {
		r.stuck = nil
		return
	}
	s.host.processes.Capture(u.Queue.Process, "")
	s.holder.holdStuck(&u)
	switch {
	case !s.wantsStuckLogs():
	case len(r.pending) >= s.selector.burst:
		s.self.countEvents("logs", 1, outcomeRateLimited)
	default:
		r.pending = append(r.pending, u)
	}
}

func (s *session) takeAsync(r *reader, e verbs.AsyncEvent, ok bool) {
	if !ok {
		r.async = nil
		return
	}
	s.events.add(e)
	r.told++
	s.tell(e, r.told)
}

func (s *session) endWindow(r *reader) { s.endWindowAs(r, false) }

// endWindowAs chooses what to export and passes on all that is to be judged.
func (s *session) endWindowAs(r *reader, last bool) {
	if err := s.refreshClock(); err != nil {
		s.logger.Warn("The clocks could not be read; times are converted with the reading before.", zap.Error(err))
	}
	w := window{start: r.began, end: s.monotonic(), stuck: r.pending, last: last, unjudged: r.ended}
	var left, refused int
	w.slow, left = s.selector.flush(time.Now())
	w.bursts, refused = s.holder.take()
	s.countEvents(left, outcomeRateLimited)
	s.self.countUnjudged(refused, unjudgedFull)
	s.self.keepFloors(s.selector.floors())
	r.pending, r.told, r.began = nil, 0, w.end
	if s.devices != nil && (len(w.bursts) > 0 || len(*s.active.Load()) > 0) {
		s.devices.want()
	}
	s.pass(w)
}

// pass passes a window on, or gives it up when the judging is far behind. The last one
// waits for it: without that no incident would be closed.
func (s *session) pass(w window) {
	if w.last {
		s.windows <- w
		return
	}
	select {
	case s.windows <- w:
		return
	default:
	}
	s.countEvents(len(w.slow), outcomeQueueFull)
	s.self.countEvents("logs", len(w.stuck), outcomeQueueFull)
	s.countUnjudged(w.bursts, unjudgedLate)
}
