// Package doctor says in plain words what a machine can observe of RDMA, what is odd
// about it, and what to do. Each check is in a file of its own: a reader of facts, and a
// pure function from facts to findings.
package doctor

import (
	"fmt"
	"slices"
)

// Level is how bad a finding is.
type Level int

// The levels, from good to bad.
const (
	// OK: as it should be.
	OK Level = iota
	// Note: worth knowing, nothing to mend.
	Note
	// Unknown: it could not be looked at.
	Unknown
	// Warning: something is wrong, or not all can be observed.
	Warning
	// Problem: nothing can be observed.
	Problem
)

// String returns the word that reports have.
func (l Level) String() string {
	names := []string{"ok", "note", "unknown", "warning", "problem"}
	if int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("level %d", int(l))
}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Finding is one thing that was found.
type Finding struct {
	// Check is the name of the check that found it.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// What is found, what it Means, and what to Do about it. The last two are left out
	// where there is nothing to say.
	What  string `json:"what"`
	Means string `json:"means,omitempty"`
	Do    string `json:"do,omitempty"`
}

// worst is the highest level among findings.
func worst(findings []Finding) Level {
	level := OK
	for _, f := range findings {
		level = max(level, f.Level)
	}
	return level
}

// of is something about one device.
type of struct {
	device string
	Finding
}

// grouped makes one finding of those that differ in the device alone: a node has eight
// NICs with the same settings.
func grouped(all []of) []Finding {
	var merged []of
	names := map[Finding][]string{}
	for _, f := range all {
		if names[f.Finding] == nil {
			merged = append(merged, f)
		}
		names[f.Finding] = append(names[f.Finding], f.device)
	}
	var findings []Finding
	for _, f := range merged {
		devices := names[f.Finding]
		f.What = list(devices) + ": " + f.What
		findings = append(findings, f.Finding)
	}
	return findings
}

// list names the first of many, without doubles.
func list(names []string) string {
	const most = 8
	unique := slices.Compact(slices.Sorted(slices.Values(names)))
	text := ""
	for i, name := range unique[:min(len(unique), most)] {
		if i > 0 {
			text += ", "
		}
		text += name
	}
	if len(unique) > most {
		text += fmt.Sprintf(" and %d more", len(unique)-most)
	}
	return text
}

// plural is a number of things.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
