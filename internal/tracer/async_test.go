package tracer

import (
	"testing"

	"github.com/rdmaradar/rdmaradar/bpf"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// The event that a queue failed often comes when its process is gone: what was
// decided about the process while it lived counts.
func TestAsyncEventOfAProcessThatEnded(t *testing.T) {
	traced, excluded, unknown := verbs.ProcessID{TGID: 10, Incarnation: 1}, verbs.ProcessID{TGID: 11, Incarnation: 2}, verbs.ProcessID{TGID: 12, Incarnation: 3}
	tr := &Tracer{async: make(chan verbs.AsyncEvent, 8)}
	var err error
	tr.cfg, err = Config{TakesProcess: func(pid int) bool { return pid == int(excluded.TGID) }}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	tr.choices.keep(traced, true)
	tr.choices.keep(excluded, false)
	for _, id := range []verbs.ProcessID{traced, excluded, unknown, {}} {
		event := bpf.ResourcesAsyncEvent{Tgid: id.TGID, Incarnation: id.Incarnation}
		tr.deliverAsync(memoryOf(&event))
	}
	close(tr.async)
	var seen []verbs.ProcessID
	for e := range tr.async {
		seen = append(seen, e.Process)
	}
	if len(seen) != 2 || seen[0] != traced || seen[1] != (verbs.ProcessID{}) {
		t.Errorf("events of %v", seen)
	}
	tr.choices.forget(excluded)
	if !tr.traces(excluded) {
		t.Error("a process that is not known is asked about")
	}
}
