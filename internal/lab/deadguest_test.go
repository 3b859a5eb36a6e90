//go:build lab

package lab

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestDeadGuestIsReported lets guests die and hang: the rest of the lab relies
// on noticing it. It runs beside the guests of TestLab, so a boot may take long.
func TestDeadGuestIsReported(t *testing.T) {
	t.Parallel()
	if err := CheckHost(); err != nil {
		t.Fatal(err)
	}
	cache, err := OpenCache(repository)
	if err != nil {
		t.Fatal(err)
	}
	line := KernelLines()[0]
	if err := cache.Prepare(t.Context(), line); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, command   string
		timeout         time.Duration
		reason, console string
	}{
		{"panic", "echo c >/proc/sysrq-trigger; sleep 600", 5 * time.Minute, "before the command ended", "sysrq triggered crash"},
		{"hang", "echo waiting >/dev/console; sleep 600", 2 * time.Minute, "no end within 2m0s", "waiting"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := Machine{Kernel: line, Share: t.TempDir(), Command: tt.command, Timeout: tt.timeout}
			_, err := m.Run(t.Context(), cache)
			var dead *DeadGuestError
			if !errors.As(err, &dead) {
				t.Fatalf("err = %v, want a dead guest", err)
			}
			if !strings.Contains(dead.Reason, tt.reason) || !strings.Contains(dead.ConsoleTail, tt.console) {
				t.Errorf("reason %q, console %q; want %q and %q", dead.Reason, dead.ConsoleTail, tt.reason, tt.console)
			}
		})
	}
}

func TestExitStatusComesBack(t *testing.T) {
	t.Parallel()
	cache, err := OpenCache(repository)
	if err != nil {
		t.Fatal(err)
	}
	line := KernelLines()[0]
	if err := cache.Prepare(t.Context(), line); err != nil {
		t.Fatal(err)
	}
	status, err := Machine{Kernel: line, Share: t.TempDir(), Command: "exit 7", Timeout: 5 * time.Minute}.Run(t.Context(), cache)
	if err != nil || status != 7 {
		t.Errorf("status %d, err %v; want 7", status, err)
	}
}
