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
	begin := time.Now()
	dies(t, cache, Machine{Kernel: line, Command: "echo c >/proc/sysrq-trigger; sleep 600", Timeout: 5 * time.Minute},
		"before the command ended", "sysrq triggered crash")
	// As long as a boot may take on this machine, by the one before, and not for minutes.
	limit := (10*time.Second + 4*time.Since(begin)).Truncate(time.Second)
	dies(t, cache, Machine{Kernel: line, Command: "echo waiting >/dev/console; sleep 1200", Timeout: limit},
		"no end within "+limit.String(), "waiting")
}

// dies runs a machine whose death has a reason and the end of a console.
func dies(t *testing.T, cache *Cache, m Machine, reason, console string) {
	t.Helper()
	m.Share = t.TempDir()
	_, err := m.Run(t.Context(), cache)
	var dead *DeadGuestError
	if !errors.As(err, &dead) {
		t.Fatalf("err = %v, want a dead guest", err)
	}
	if !strings.Contains(dead.Reason, reason) || !strings.Contains(dead.ConsoleTail, console) {
		t.Errorf("reason %q, console %q; want %q and %q", dead.Reason, dead.ConsoleTail, reason, console)
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
