package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
)

// choice says which scenarios are played.
type choice struct{ match *regexp.Regexp }

// choiceFrom reads a regular expression of names from the environment; without one all
// are played.
func choiceFrom(variable string) (choice, error) {
	c, err := newChoice(os.Getenv(variable))
	if err != nil {
		return choice{}, fmt.Errorf("%s: %w", variable, err)
	}
	return c, nil
}

func newChoice(pattern string) (choice, error) {
	match, err := regexp.Compile(pattern)
	return choice{match}, err
}

// ofHost are the scenarios of this host that are played.
func (c choice) ofHost() []scenario {
	return slices.DeleteFunc(scenarios(), func(s scenario) bool { return !c.match.MatchString(s.name) })
}

// ofGuest are those of the virtual machine.
func (c choice) ofGuest() []rxeScenario {
	return slices.DeleteFunc(rxeScenarios(), func(s rxeScenario) bool { return !c.match.MatchString(s.name) })
}
