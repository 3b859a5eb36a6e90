package suite

import (
	"slices"
	"testing"

	"github.com/rdmaradar/rdmaradar/internal/lab/report"
)

func TestCostsSince(t *testing.T) {
	account := func(costs ...report.ProgramCost) map[string]report.ProgramCost {
		all := map[string]report.ProgramCost{}
		for _, c := range costs {
			all[c.Name] = c
		}
		return all
	}
	before := account(report.ProgramCost{Name: "trace_a", Runs: 3, Nanoseconds: 300}, report.ProgramCost{Name: "trace_b", Runs: 5, Nanoseconds: 50})
	for name, tc := range map[string]struct {
		after map[string]report.ProgramCost
		want  []report.ProgramCost
		fails bool
	}{
		"one ran, one did not, one is new": {
			after: account(
				report.ProgramCost{Name: "trace_c", Runs: 1, Nanoseconds: 10}, report.ProgramCost{Name: "trace_b", Runs: 5, Nanoseconds: 50},
				report.ProgramCost{Name: "trace_a", Runs: 7, Nanoseconds: 900},
			),
			want: []report.ProgramCost{{Name: "trace_a", Runs: 4, Nanoseconds: 600}, {Name: "trace_c", Runs: 1, Nanoseconds: 10}},
		},
		"one is gone": {
			after: account(report.ProgramCost{Name: "trace_a", Runs: 7, Nanoseconds: 900}),
			want:  []report.ProgramCost{{Name: "trace_a", Runs: 4, Nanoseconds: 600}},
		},
		"one has fewer runs":        {after: account(report.ProgramCost{Name: "trace_a", Runs: 2, Nanoseconds: 900}), fails: true},
		"one took less time so far": {after: account(report.ProgramCost{Name: "trace_a", Runs: 7, Nanoseconds: 299}), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := costsSince(before, tc.after)
			if (err != nil) != tc.fails {
				t.Fatal(err)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}
