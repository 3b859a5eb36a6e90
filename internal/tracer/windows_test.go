package tracer

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"

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

// closedLink is a link that counts how often it was closed.
type closedLink struct {
	link.Link
	closed int
}

func (l *closedLink) Close() error { l.closed++; return nil }

// A comparison begins, or sites are given up, while entries are probed beside
// sites: that probe goes, and the library is governed again.
func TestEvidenceEndsWithSites(t *testing.T) {
	for mode, ends := range map[pollMode]bool{modeSite: false, modeComparing: true, modeWindows: true} {
		look := &closedLink{}
		f := &pollFunction{look: []link.Link{look}, evidence: evidence{open: true, every: evidenceEvery}}
		f.ladder.mode = mode
		a := &attachment{polls: []*pollFunction{f}}
		if err := (&Tracer{}).endEvidence(f, time.Now()); err != nil {
			t.Fatal(err)
		}
		if (look.closed == 1) != ends || (len(f.look) == 0) != ends || a.gathersEvidence() == ends {
			t.Errorf("%s: the probe was closed %d times, %d are left, gathers evidence: %v", mode, look.closed, len(f.look), a.gathersEvidence())
		}
	}
}
