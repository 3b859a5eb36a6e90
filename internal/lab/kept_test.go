package lab

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/lab/report"
)

// keptBoot makes a boot and a cache of small files, and returns what the guest is given.
func keptBoot(t *testing.T) (Boot, *Cache, map[string]string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("RDMARADAR_CACHE", dir)
	cache, err := OpenCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := Boot{Kernel: KernelLines()[0], Repository: dir}
	contents := map[string]string{"guest": filepath.Join(dir, "guest"), "pair": filepath.Join(dir, "pair")}
	for _, path := range []string{contents["guest"], contents["pair"], cache.rootImage(), filepath.Join(cache.kernelDir(b.Kernel), "lib", "module")} {
		change(t, path, "first")
	}
	return b, cache, contents
}

func change(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// emulator stands before the real one, which need not be there.
func emulator(t *testing.T, version string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "qemu-system-x86_64")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+version+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestFingerprintIsOfAllThatDecides(t *testing.T) {
	b, cache, contents := keptBoot(t)
	emulator(t, "one")
	fingerprint := func() string {
		t.Helper()
		print, err := b.fingerprint(t.Context(), cache, contents)
		if err != nil {
			t.Fatal(err)
		}
		return print
	}
	seen := map[string]string{fingerprint(): "nothing"}
	if again := fingerprint(); seen[again] == "" {
		t.Fatal("the same boot has another fingerprint")
	}
	changes := []struct {
		name string
		made func()
	}{
		{"program", func() { change(t, contents["pair"], "other") }},
		{"program of the same size", func() { change(t, contents["pair"], "OTHER") }},
		{"root image", func() { change(t, cache.rootImage(), "other") }},
		{"module", func() { change(t, filepath.Join(cache.kernelDir(b.Kernel), "lib", "module"), "other") }},
		{"one more module", func() { change(t, filepath.Join(cache.kernelDir(b.Kernel), "lib", "another"), "") }},
		{"one more program", func() { contents["more"] = contents["guest"] }},
		{"names exchanged", func() { contents["guest"], contents["pair"] = contents["pair"], contents["guest"] }},
		{"emulator", func() { emulator(t, "two") }},
		{"pattern", func() { b.Pattern = "x" }},
		{"service", func() { b.Service = true }},
	}
	for _, c := range changes {
		c.made()
		print := fingerprint()
		if before := seen[print]; before != "" {
			t.Errorf("after the change of %q the fingerprint is that after %q", c.name, before)
		}
		seen[print] = c.name
	}
}

func TestFingerprintNamesWhatIsMissing(t *testing.T) {
	b, cache, contents := keptBoot(t)
	emulator(t, "one")
	if err := os.Remove(contents["pair"]); err != nil {
		t.Fatal(err)
	}
	if print, err := b.fingerprint(t.Context(), cache, contents); err == nil {
		t.Errorf("fingerprint %s without a program", print)
	}
}

func TestOnlyPassedResultsOfTheSameBootAreKept(t *testing.T) {
	b, cache, _ := keptBoot(t)
	passed := report.Kernel{Release: "6.1.0", Tests: []report.Test{{Name: "a", Result: report.Pass}}}
	failed := report.Kernel{Tests: []report.Test{{Name: "a", Result: report.Fail, Why: "no"}}}
	keep := func(b Boot, fingerprint string, results report.Kernel) {
		t.Helper()
		if err := b.keep(cache, fingerprint, results); err != nil {
			t.Fatal(err)
		}
	}
	is := func(fingerprint string, want bool) {
		t.Helper()
		got, found := cache.results(b.name(), fingerprint)
		if found != want {
			t.Errorf("results of %s: %+v, %v", fingerprint, got, found)
		}
		if found && (got.KeptFrom == nil || got.Release != passed.Release) {
			t.Errorf("kept %+v", got)
		}
	}
	is("x", false)
	keep(b, "x", passed)
	is("x", true)
	is("y", false)
	keep(Boot{Kernel: b.Kernel, Pattern: "a"}, "z", passed)
	is("x", true)
	is("z", false)
	keep(b, "x", failed)
	is("x", false)
	change(t, cache.passedPath(b.name()), "{torn")
	is("x", false)
}

// A boot that could not be made says nothing about the one before.
func TestFailedBootIsForgotten(t *testing.T) {
	b, cache, _ := keptBoot(t)
	emulator(t, "one")
	b.Repository = t.TempDir()
	for _, name := range append(builtPrograms(), "bin/otelcol-rdma", "guest", "out/lab") {
		change(t, filepath.Join(b.Repository, name), name)
	}
	passed := report.Kernel{Tests: []report.Test{{Name: "a", Result: report.Pass}}}
	if err := b.keep(cache, "x", passed); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Run(t.Context(), cache, filepath.Join(b.Repository, "guest"), io.Discard); err == nil {
		t.Fatal("it boots without a directory for what it leaves")
	}
	if _, found := cache.results(b.name(), "x"); found {
		t.Error("the results of the boot before are still there")
	}
}
