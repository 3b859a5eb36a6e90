package doctor

import (
	"context"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/text"
)

// Check looks at one side of a machine.
type Check struct {
	Name string
	Run  func(context.Context) []Finding
}

// Report is what the checks found.
type Report struct {
	At     time.Time `json:"at"`
	Host   string    `json:"host,omitempty"`
	Kernel string    `json:"kernel,omitempty"`
	Worst  Level     `json:"worst"`
	// Findings are in the order of the checks.
	Findings []Finding `json:"findings"`
	// NotReached are the checks that did not end in time.
	NotReached []string `json:"not_reached,omitempty"`
}

// Run runs checks side by side until the context ends. A check that hangs, as in a read
// of a driver or a file system that does not answer, is left behind.
func Run(ctx context.Context, checks []Check) Report {
	type result struct {
		check    int
		findings []Finding
	}
	results := make(chan result, len(checks))
	for i, check := range checks {
		go func() { results <- result{i, check.Run(ctx)} }()
	}
	found, reached := make([][]Finding, len(checks)), make([]bool, len(checks))
	for range checks {
		if r, ok := Await(ctx, results); ok {
			found[r.check], reached[r.check] = r.findings, true
		}
	}
	return reportOf(checks, found, reached)
}

func reportOf(checks []Check, found [][]Finding, reached []bool) Report {
	report := Report{At: time.Now().UTC(), Findings: []Finding{}}
	for i, check := range checks {
		if !reached[i] {
			report.NotReached = append(report.NotReached, check.Name)
			continue
		}
		for _, f := range found[i] {
			// Names in it may be those of processes.
			f.What, f.Means, f.Do = text.Clean(f.What, maxText), text.Clean(f.Means, maxText), text.Clean(f.Do, maxText)
			f.Check = check.Name
			report.Findings = append(report.Findings, f)
		}
	}
	report.Worst = worst(report.Findings)
	if len(report.NotReached) > 0 {
		report.Worst = max(report.Worst, Warning)
	}
	return report
}
