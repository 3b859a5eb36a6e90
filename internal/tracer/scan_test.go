package tracer

import (
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/bpf"
)

// What is known of a Completion Queue that is polled stays, also when no poll of
// it is short: that several threads poll it is among that.
func TestBusyCQIsNotIdle(t *testing.T) {
	const now = uint64(time.Hour)
	for name, c := range map[string]struct {
		cq   bpf.TrackerCq
		want bool
	}{
		"short polls":           {bpf.TrackerCq{ShortPollNs: now - uint64(time.Second), PolledNs: now - uint64(time.Second)}, false},
		"full polls only":       {bpf.TrackerCq{PolledNs: now - uint64(time.Second)}, false},
		"entries of polls only": {bpf.TrackerCq{ShortPollNs: now - uint64(time.Second)}, false},
		"long ago":              {bpf.TrackerCq{ShortPollNs: now - uint64(2*time.Minute), PolledNs: now - uint64(2*time.Minute)}, true},
	} {
		if got := isIdle(&c.cq, now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
