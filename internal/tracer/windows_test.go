package tracer

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/provider"
)

// A library whose probes cannot be attached for a window is tried again, later
// each time, and then off, as its functions tell.
func TestLibraryThatCannotBeProbedIsTurnedOff(t *testing.T) {
	tr := &Tracer{log: slog.New(slog.DiscardHandler)}
	f := &pollFunction{ladder: newLadder(time.Now(), true, provider.Unverified)}
	a := &attachment{polls: []*pollFunction{f}}
	last := time.Now()
	for n := range mostFailures {
		tr.turnOff(a, errors.New("refused"))
		if a.off || !a.schedule.resume.After(last) {
			t.Fatalf("failure %d: off %v, resumes in %v", n+1, a.off, time.Until(a.schedule.resume))
		}
		last = a.schedule.resume
	}
	tr.turnOff(a, errors.New("refused"))
	if !a.off || f.ladder.mode != modeOff || modeOfOthers(a) != modeOff {
		t.Errorf("after %d failures: off %v, mode %s", mostFailures+1, a.off, f.ladder.mode)
	}
}
