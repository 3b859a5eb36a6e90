package diagnose

import (
	"regexp"
	"strings"
	"testing"
)

var causeName = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

func TestCausesAreWhole(t *testing.T) {
	known := map[string]bool{}
	for _, cause := range Causes() {
		if known[cause.Name] {
			t.Errorf("two causes are named %s", cause.Name)
		}
		known[cause.Name] = true
		checkWhole(t, cause)
	}
	if known[Unknown] {
		t.Errorf("a cause is named %s", Unknown)
	}
	for _, cause := range Causes() {
		for _, consequence := range cause.Consequences {
			if !known[consequence] || consequence == cause.Name {
				t.Errorf("%s has the consequence %s, which is no other cause", cause.Name, consequence)
			}
		}
	}
}

func checkWhole(t *testing.T, cause Cause) {
	t.Helper()
	if !causeName.MatchString(cause.Name) {
		t.Errorf("%q is no name of a cause", cause.Name)
	}
	for field, value := range map[string]string{
		"Title": cause.Title, "Happens": cause.Happens, "Needs": cause.Needs, "CannotTell": cause.CannotTell,
		"Confirm": cause.Confirm, "Remedy": cause.Remedy,
	} {
		if strings.TrimSpace(value) == "" {
			t.Errorf("%s has no %s", cause.Name, field)
		}
	}
	if len(cause.For) == 0 || len(cause.Against) == 0 || cause.judge == nil {
		t.Errorf("%s says nothing for it, nothing against it, or does not judge", cause.Name)
	}
	if cause.Proven != Executed && cause.Proven != Recorded {
		t.Errorf("%s is proven %q", cause.Name, cause.Proven)
	}
	if len(cause.Source) == 0 {
		t.Errorf("%s has no source", cause.Name)
	}
	for _, source := range cause.Source {
		if !strings.HasPrefix(source, "https://") {
			t.Errorf("%s has the source %q, which is no public address", cause.Name, source)
		}
	}
}

func TestCausesOfTheHost(t *testing.T) {
	for _, cause := range hostCauses() {
		if !cause.PerProcess {
			t.Errorf("%s is no matter of one process", cause.Name)
		}
	}
}
