package tracer

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A warning that processes provoke without end is told once in an interval, with
// the number of the others at its end.
func TestWarningsAreBounded(t *testing.T) {
	var text bytes.Buffer
	w := newWarnings(slog.New(slog.NewTextHandler(&text, nil)))
	lines := func() []string {
		defer text.Reset()
		return strings.Split(strings.TrimSpace(text.String()), "\n")
	}
	now := time.Now()
	for i := range 1000 {
		if told := w.warn(now, "a program lies", "pid", i); told != (i == 0) {
			t.Fatalf("line %d was told: %v", i, told)
		}
		w.warn(now, "a program hides", "pid", i)
	}
	got := lines()
	if len(got) != 2 || !strings.Contains(got[0], `"a program lies" pid=0`) || !strings.Contains(got[1], `"a program hides" pid=0`) {
		t.Fatalf("it says %q", got)
	}
	w.tellLeft(now.Add(warnInterval - 1))
	if got := lines(); got[0] != "" {
		t.Errorf("before the interval ends: %q", got)
	}
	now = now.Add(warnInterval)
	w.tellLeft(now)
	if got = lines(); len(got) != 2 || !strings.Contains(got[0], "others=999") || !strings.Contains(got[1], "others=999") {
		t.Errorf("at its end: %q", got)
	}

	// It goes on within the next interval, and not after that.
	w.warn(now, "a program lies", "pid", 1000)
	now = now.Add(warnInterval)
	w.tellLeft(now)
	if got = lines(); len(got) != 1 || !strings.Contains(got[0], "others=1 ") {
		t.Errorf("in the next interval: %q", got)
	}
	for range 2 {
		now = now.Add(warnInterval)
		w.tellLeft(now)
	}
	if got := lines(); got[0] != "" {
		t.Errorf("when it has ended: %q", got)
	}
	w.warn(now, "a program lies", "pid", 1001)
	if got := lines(); !strings.Contains(got[0], "pid=1001") {
		t.Errorf("when it begins anew: %q", got)
	}
}
