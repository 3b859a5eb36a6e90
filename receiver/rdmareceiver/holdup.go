package rdmareceiver

import "sync/atomic"

// holdup is what the end of the receiver waits for, in words for who reads the log.
// Its zero value waits for nothing; it is safe for concurrent use.
type holdup struct{ what atomic.Value }

// waitFor says what is waited for from now on.
func (h *holdup) waitFor(what string) { h.what.Store(what) }

// String returns what is waited for.
func (h *holdup) String() string {
	what, _ := h.what.Load().(string)
	return orElse(what, "nothing that is known")
}
