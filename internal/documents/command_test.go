package documents

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	// generated is what a test of its own holds, such as the flags of a command.
	generated = regexp.MustCompile(`(?s)<!-- flags \w+ -->.*?<!-- /flags -->`)
	// continued is the end of a line that goes on in the next.
	continued = regexp.MustCompile(`\s*\\\n\s*`)
	// isCommand is of a code span: with words after it, what people call by name here. What
	// make is asked for has a test of its own, and what confirms a cause (docs/causes.md) is
	// for nodes that have it.
	isCommand = regexp.MustCompile(`^(\w+=\S* )*(rdmaradar [a-z]|(bin/\S+|otelcol-\w+|systemctl|journalctl|sysctl|dpkg|rpm|curl|ssh|kubectl|helm|` +
		`skopeo|sinfo|scontrol|prom\w+|2>&1) \S)`)
)

// commandsIn are the lines of an indented block, which is one of commands; other blocks have
// fences.
func commandsIn(block string) []string {
	var commands []string
	for line := range strings.Lines(continued.ReplaceAllString(block, " ")) {
		if line = strings.TrimSpace(line); line != "" {
			commands = append(commands, line)
		}
	}
	return commands
}

// Every command of a document is run by these tests or by others, or is known not to be,
// and why. What is known is in a document.
func TestEveryCommandIsRunOrKnownNotToBe(t *testing.T) {
	var known, found []string
	for command := range elsewhere {
		known = append(known, command)
	}
	for command := range notRun {
		known = append(known, command)
	}
	for _, tried := range trials {
		known = append(known, tried.command)
		for _, meanwhile := range tried.meanwhile {
			known = append(known, meanwhile.command)
		}
	}
	all := documents(t)
	delete(all, "CHANGELOG.md") // It names what was then.
	for name, d := range all {
		for _, command := range d.commands {
			found = append(found, command)
			assert.True(t, slices.Contains(known, command), "%s has %q, which nothing runs: add it to trials, or to those that are not run", name, command)
		}
	}
	for _, command := range known {
		assert.True(t, slices.Contains(found, command), "no document has %q any more", command)
	}
	slices.Sort(known)
	assert.Len(t, slices.Compact(slices.Clone(known)), len(known), "one of them is there twice: %q", known)
}

// What runs a command elsewhere is there.
func TestWhatRunsCommandsExists(t *testing.T) {
	tests := testsOfTheRepository(t)
	targets := targetsOfMake(t)
	for command, by := range elsewhere {
		target, isTarget := strings.CutPrefix(by, "make ")
		if isTarget {
			assert.True(t, targets[target], "%s is run by %s, which the Makefile does not have", command, by)
			continue
		}
		assert.True(t, tests[by], "%s is run by %s, which does not exist", command, by)
	}
}

func TestCommandsAreFound(t *testing.T) {
	got := parse([]byte("Text with `rdmaradar`, `rdmaradar top`, `A=1 otelcol-rdma validate`, `make it` and `metric.name`.\n\n" +
		"    one --flag\n    (two; three) > four\n    five \\\n      six\n\n```\noutput\n```\n\n" +
		"<!-- flags x -->\n\n      --seven  of eight\n\n<!-- /flags -->\n"))
	assert.Equal(t, []string{"rdmaradar top", "A=1 otelcol-rdma validate", "one --flag", "(two; three) > four", "five six"}, got.commands)
}
