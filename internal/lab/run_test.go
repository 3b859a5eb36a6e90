package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/lab/report"
)

func TestDeathOf(t *testing.T) {
	dead := fmt.Errorf("boot: %w", &DeadGuestError{Kernel: "6.1", Reason: "no end within 1m0s", ConsoleTail: "Kernel panic"})
	tests := []struct {
		name   string
		status int
		err    error
		want   string
		fails  bool
	}{
		{"well", 0, nil, "", false},
		{"status", 3, nil, "status 3", false},
		{"dead", 0, dead, "Kernel panic", false},
		{"host failed", 0, errors.New("no space"), "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			died, err := deathOf(tt.status, tt.err)
			if !strings.Contains(died, tt.want) || (died == "") != (tt.want == "") || (err != nil) != tt.fails {
				t.Errorf("died %q, err %v", died, err)
			}
		})
	}
}

func TestBootNamesAMissingCollector(t *testing.T) {
	b := Boot{Repository: t.TempDir(), Kernel: KernelLines()[0]}
	if _, err := b.contents("guest"); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("err = %v", err)
	}
}

func TestBootWithoutEventsFailsEveryTest(t *testing.T) {
	b := Boot{Kernel: KernelLines()[0], Tests: []string{"a", "b"}}
	k, err := b.results(filepath.Join(t.TempDir()), "it panicked")
	if err != nil || len(k.Tests) != 2 || k.Tests[1].Result != report.Fail || !strings.Contains(k.Tests[1].Why, "it panicked") {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestPrepareShareStartsAfresh(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"bin", "out/lab/guest-6.1"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	stale := filepath.Join(dir, "out/lab/guest-6.1/events.jsonl")
	for _, f := range append(builtPrograms(), "bin/otelcol-rdma", "guest") {
		if err := os.WriteFile(filepath.Join(dir, f), []byte(f), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(stale, []byte("old results"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := Boot{Repository: dir, Kernel: KernelLines()[0]}
	contents, err := b.contents(filepath.Join(dir, "guest"))
	if err != nil {
		t.Fatal(err)
	}
	share, err := b.prepareShare(contents)
	if err != nil {
		t.Fatal(err)
	}
	if exists(stale) {
		t.Error("the results of an earlier run are still there")
	}
	for _, f := range append(builtPrograms(), "guest", "otelcol-rdma") {
		info, err := os.Stat(filepath.Join(share, f))
		if err != nil || info.Mode().Perm()&0o111 == 0 {
			t.Errorf("%s: %v, %v", f, info, err)
		}
	}
	if err := dropContents(share, contents); err != nil || exists(filepath.Join(share, "guest")) {
		t.Errorf("binaries stay: %v", err)
	}
}
