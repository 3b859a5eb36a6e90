package tracer

import (
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// Interrupts are watched from the first slow completion until some time after the
// last, and only then.
func TestInterruptsAreWatchedWhileSlow(t *testing.T) {
	i := interrupts{lasting: 10 * time.Second, programs: make([]*ebpf.Program, 4)}
	for _, c := range []struct {
		after time.Duration
		slow  bool
		want  bool
	}{
		{0, false, false},
		{time.Minute, false, false},
		{time.Minute + 200*time.Millisecond, true, true},
		{time.Minute + 400*time.Millisecond, false, true},
		{time.Minute + 10*time.Second, false, true},
		{time.Minute + 10*time.Second + 100*time.Millisecond, true, true},
		{time.Minute + 20*time.Second, false, true},
		{time.Minute + 20*time.Second + 100*time.Millisecond, false, false},
		{2 * time.Minute, false, false},
		{2*time.Minute + 200*time.Millisecond, true, true},
	} {
		if got := i.wanted(epoch.Add(c.after), c.slow); got != c.want {
			t.Errorf("after %v, slow %v: watched %v, want %v", c.after, c.slow, got, c.want)
		}
	}
}

// A kernel without the tracepoints has no programs to attach.
func TestInterruptsOfOtherKernels(t *testing.T) {
	i := interrupts{lasting: time.Second}
	for range 3 {
		if err := i.turn(epoch, true); err != nil || i.watching() {
			t.Fatalf("watched without programs: %v, %v", i.watching(), err)
		}
	}
}
