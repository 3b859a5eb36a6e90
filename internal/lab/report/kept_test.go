package report

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestKeptResultsAreSaid(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kept.txt")
	early := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	late := early.Add(time.Hour)
	r := Report{Kernels: []Kernel{{}, {KeptFrom: &late}, {KeptFrom: &early}}}
	if err := r.WriteKept(dir); err != nil {
		t.Fatal(err)
	}
	const want = "KEPT the results of 2 of 3 boots, the oldest from 2026-01-02 03:04:05 UTC: nothing that decides them has changed; make lab boots all\n"
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%q, %v, expected %q", got, err, want)
	}
	if err := (Report{Kernels: []Kernel{{}}}).WriteKept(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a run of all boots leaves %s: %v", path, err)
	}
}

func TestPassedNeedsTests(t *testing.T) {
	tests := []struct {
		results []string
		want    bool
	}{
		{nil, false},
		{[]string{Pass}, true},
		{[]string{Pass, Skip}, true},
		{[]string{Pass, Fail}, false},
		{[]string{""}, false},
	}
	for _, tt := range tests {
		var k Kernel
		for _, result := range tt.results {
			k.Tests = append(k.Tests, Test{Result: result})
		}
		if got := k.Passed(); got != tt.want {
			t.Errorf("%q: %v", tt.results, got)
		}
	}
}
