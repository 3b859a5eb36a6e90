package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
)

// choice says which scenarios are played.
type choice struct {
	match *regexp.Regexp
	// place is where: here or guest, "" for both.
	place string
}

// resultPath is where the score of what is played is written.
func (c choice) resultPath() string {
	if c.place == "" {
		return "out/verdicts.json"
	}
	return fmt.Sprintf("out/verdicts-%s.json", c.place)
}

// choiceFrom reads a regular expression of names and a place from the environment;
// without them all are played.
func choiceFrom(names, place string) (choice, error) {
	c, err := newChoice(os.Getenv(names))
	if err != nil {
		return choice{}, fmt.Errorf("%s: %w", names, err)
	}
	c.place = os.Getenv(place)
	if !slices.Contains([]string{"", here, guest}, c.place) {
		return choice{}, fmt.Errorf("%s is %q: give %s or %s", place, c.place, here, guest)
	}
	return c, nil
}

// The places of scenarios.
const (
	here  = "here"
	guest = "guest"
)

func newChoice(pattern string) (choice, error) {
	match, err := regexp.Compile(pattern)
	return choice{match: match}, err
}

// ofHost are the scenarios of this host that are played.
func (c choice) ofHost() []scenario {
	return slices.DeleteFunc(scenarios(), func(s scenario) bool { return c.place == guest || !c.match.MatchString(s.name) })
}

// ofGuest are those of the virtual machine.
func (c choice) ofGuest() []rxeScenario {
	return slices.DeleteFunc(rxeScenarios(), func(s rxeScenario) bool { return c.place == here || !c.match.MatchString(s.name) })
}
