package rdmareceiver

import "slices"

// readings remembers what only grows, second by second: what happened in a window
// needs a value from before it. It is not safe for concurrent use.
type readings[K comparable, V any] struct {
	// recent has the last ones, the oldest first.
	recent []reading[K, V]
}

type reading[K comparable, V any] struct {
	at uint64
	of map[K]V
}

// add takes the values of a moment.
func (r *readings[K, V]) add(at uint64, of map[K]V) {
	if len(r.recent) == maxTallies {
		r.recent = slices.Delete(r.recent, 0, 1)
	}
	r.recent = append(r.recent, reading[K, V]{at, of})
}

// latest is the value in the last reading; ok is false when that has none.
func (r *readings[K, V]) latest(key K) (value V, ok bool) {
	if len(r.recent) == 0 {
		return value, false
	}
	value, ok = r.recent[len(r.recent)-1].of[key]
	return value, ok
}

// before is the last value before a moment, or the first one after it, the latest
// left out; ok is false when there is none.
func (r *readings[K, V]) before(key K, since uint64) (value V, ok bool) {
	for i := range len(r.recent) - 1 {
		one := &r.recent[i]
		v, there := one.of[key]
		if there && (!ok || one.at <= since+uint64(glanceDelay)) {
			value, ok = v, true
		}
	}
	return value, ok
}
