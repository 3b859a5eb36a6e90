package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// Whoever else is at work on this machine may take the processor away from a
// workload. That this was seen is right, whatever was injected, if it is true: by
// the kernel's own account of the workload, which the collector does not read.

// waitedOf is for how long the first thread of a process wanted a processor and had
// none.
func waitedOf(pid int) (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/schedstat", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var ran, waited int64
	if _, err := fmt.Sscan(string(text), &ran, &waited); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return time.Duration(waited), nil
}

// isOfOthers reports whether a verdict tells of others that took the processor away
// from a workload, which waited for one so long, though nothing of the kind was
// injected.
func (s *scenario) isOfOthers(r *record, waited time.Duration) bool {
	return !s.crowded && r.cause == "poller_preempted" && r.worst > 0 && waited >= r.worst/2
}

// hear takes what was said so far, of a workload that waited so long.
func (o *outcome) hear(said []record, waited time.Duration) {
	isOfOthers := func(r record) bool { return o.scenario.isOfOthers(&r, waited) }
	o.disturbed = slices.ContainsFunc(said, isOfOthers)
	o.verdicts = slices.DeleteFunc(slices.Clone(said), isOfOthers)
}
