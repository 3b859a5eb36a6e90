package baseline

import "time"

const (
	// onsetSlow slow requests at one look begin an episode, and so do looks within
	// onsetSpan of each other that both found some: one alone, now and then, does
	// not.
	onsetSlow = 10
	onsetSpan = 5 * time.Second
	// endQuiet without a slow request ends an episode. What comes sooner belongs
	// to it, so that it neither ends nor begins with each pause.
	endQuiet = 10 * time.Second
)

// Change says what happened to the episode of a kind.
type Change uint8

// The changes.
const (
	Unchanged Change = iota
	Began
	Ended
)

// Episode is a time in which requests of one kind were slow again and again. Times
// are nanoseconds of the caller's monotonic clock.
type Episode struct {
	// Onset is the look before the first one that found slow requests, Last the
	// last one that did.
	Onset, Last uint64
	// Slow counts the slow requests from the onset on.
	Slow uint64
}

// Episodes tells when the slowness of each kind began and ended. It is not safe for
// concurrent use.
type Episodes[K comparable] struct {
	kinds  map[K]*slowness
	looked uint64
	look   uint64
}

// slowness is an episode, or what may become one.
type slowness struct {
	Episode
	lasts bool
}

// NewEpisodes returns a detector that has seen nothing.
func NewEpisodes[K comparable]() *Episodes[K] {
	return &Episodes[K]{kinds: map[K]*slowness{}}
}

// Look begins a look at all kinds at a moment in nanoseconds of a monotonic clock. It
// is to be called about once a second, before Observe for the kinds.
func (e *Episodes[K]) Look(now uint64) {
	if e.look == 0 {
		e.look = now
	}
	e.looked, e.look = e.look, now
}

// Observe takes how many requests of a kind were slow since the look before, and
// returns the kind's episode where that began or ended. Kinds that had none have to be
// observed, too, or their episodes last.
func (e *Episodes[K]) Observe(kind K, slow uint64) (Episode, Change) {
	s := e.kinds[kind]
	if slow == 0 {
		return e.rest(kind, s)
	}
	if s == nil || !s.lasts && time.Duration(e.look-s.Last) > onsetSpan {
		s = &slowness{Episode: Episode{Onset: e.looked, Last: e.look}}
		e.kinds[kind] = s
	}
	again := s.Slow > 0
	s.Slow += slow
	s.Last = e.look
	if s.lasts || !again && slow < onsetSlow {
		return s.Episode, Unchanged
	}
	s.lasts = true
	return s.Episode, Began
}

// rest is of a kind that had nothing slow.
func (e *Episodes[K]) rest(kind K, s *slowness) (Episode, Change) {
	if s == nil {
		return Episode{}, Unchanged
	}
	quiet := time.Duration(e.look - s.Last)
	switch {
	case s.lasts && quiet >= endQuiet:
		delete(e.kinds, kind)
		return s.Episode, Ended
	case !s.lasts && quiet >= onsetSpan:
		delete(e.kinds, kind)
	}
	return s.Episode, Unchanged
}

// Forget drops a kind, and reports the end of its episode if it had one.
func (e *Episodes[K]) Forget(kind K) (Episode, Change) {
	s := e.kinds[kind]
	delete(e.kinds, kind)
	if s == nil || !s.lasts {
		return Episode{}, Unchanged
	}
	return s.Episode, Ended
}
