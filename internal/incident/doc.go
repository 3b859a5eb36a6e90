// Package incident makes a few incidents of many verdicts: what is slow for one
// cause on one device, and for some causes in one process, is one incident for as
// long as it goes on. It is opened by the first verdicts that are more than a little,
// updated by those that follow, and closed by silence.
//
// A [Book] holds the incidents that are open. It has no clock and no goroutine: the
// time is passed in, on CLOCK_MONOTONIC in nanoseconds.
package incident
