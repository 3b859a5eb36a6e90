package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// score is what all runs came to, as it is written to the resultPath of a choice.
type score struct {
	// Runs counts shuffles, Injections what was done in all of them.
	Runs       int    `json:"runs"`
	Seed       uint64 `json:"seed"`
	Injections int    `json:"injections"`
	// RightFirst is the share of injections whose first verdict was right,
	// ConfidentlyWrong that of which any verdict was certain or likely, and wrong.
	RightFirst       float64 `json:"right_first"`
	ConfidentlyWrong float64 `json:"confidently_wrong"`
	// WorstSeconds is the longest from the injection to its first verdict.
	WorstSeconds float64 `json:"worst_seconds_to_verdict"`
	// Disturbed counts injections into a workload from which others on this machine
	// took the processor away at the same time, and that was said. By the kernel's own
	// account it is true, and so it is not among what was named.
	Disturbed int `json:"disturbed"`
	// Again counts the plays in the virtual machine that were thrown away, whatever was
	// said, because the emulated processor stood still meanwhile. Stalled counts those
	// in which it did the last time too, and that count all the same.
	Again   int `json:"played_again"`
	Stalled int `json:"stalled"`
	// Matrix counts, for what was injected, what was named first.
	Matrix map[string]map[string]int `json:"matrix"`

	right, lies int
	// plays are by scenario.
	plays map[string]*plays
}

// plays counts how often a scenario was played, and was named right.
type plays struct{ all, right int }

// outcome is what was said of one injection.
type outcome struct {
	scenario *scenario
	injected time.Time
	verdicts []record
	// disturbed is true when others took the processor away from the workload, and
	// that was said as well.
	disturbed bool
	// again and stalled are what score says of the same names.
	again   int
	stalled bool
}

// slack is by how much a workload's clock may differ, and how long before it stops
// to post it may have posted last.
const slack = 200 * time.Millisecond

// parts are the outcome, without what was said before the injection where that is a
// scenario of its own.
func (o *outcome) parts() []*outcome {
	if o.scenario.before == "" {
		return []*outcome{o}
	}
	calm := &outcome{scenario: &scenario{name: o.scenario.before, names: []string{nothing}}, injected: o.injected}
	late := &outcome{scenario: o.scenario, injected: o.injected, disturbed: o.disturbed}
	for _, r := range o.verdicts {
		if r.began.Before(o.injected.Add(-slack)) {
			calm.verdicts = append(calm.verdicts, r)
		} else {
			late.verdicts = append(late.verdicts, r)
		}
	}
	return []*outcome{calm, late}
}

// first is the name in the first verdict.
func (o *outcome) first() string {
	if len(o.verdicts) == 0 {
		return nothing
	}
	return o.verdicts[0].cause
}

// isRight reports whether the first verdict names the cause, says what it has to say, and
// did not come before there was anything to say.
func (o *outcome) isRight() bool { return o.scenario.sees(o.first()) && o.isSaid() && !o.isEarly() }

// isEarly reports whether there was a verdict before the injection, as far as the clocks agree.
func (o *outcome) isEarly() bool {
	return len(o.verdicts) > 0 && o.precedes(&o.verdicts[0])
}

func (o *outcome) precedes(r *record) bool { return r.came.Before(o.injected.Add(-slack)) }

func (o *outcome) isSaid() bool {
	return len(o.verdicts) == 0 || strings.Contains(o.verdicts[0].body, o.scenario.says)
}

// named is what the matrix has of it.
func (o *outcome) named() string {
	switch {
	case o.isEarly():
		return o.first() + " (before the injection)"
	case !o.isSaid():
		return fmt.Sprintf("%s (without %q)", o.first(), o.scenario.says)
	default:
		return o.first()
	}
}

// isLie reports whether a verdict was confident and wrong, or about nothing.
func (o *outcome) isLie() bool {
	return slices.ContainsFunc(o.verdicts, func(r record) bool {
		return r.isConfident() && (!o.scenario.sees(r.cause) || o.precedes(&r))
	})
}

// seconds is how long the first verdict took, 0 without one.
func (o *outcome) seconds() float64 {
	if len(o.verdicts) == 0 {
		return 0
	}
	return max(o.verdicts[0].came.Sub(o.injected).Seconds(), 0)
}

// print prints what was said first, and all of it where that was wrong.
func (o *outcome) print(number int) {
	mark := "right"
	if !o.isRight() {
		mark = "WRONG"
	}
	if o.isLie() {
		mark = "LIE"
	}
	fmt.Printf("%d  %-5s %-26s %s after %.1f s\n", number, mark, o.scenario.name, o.first(), o.seconds())
	for i := range o.verdicts {
		if mark != "right" || i == 0 {
			fmt.Printf("      %s\n", o.verdicts[i].body)
		}
	}
}

func newScore(runs int, seed uint64) *score {
	return &score{Runs: runs, Seed: seed, Matrix: map[string]map[string]int{}, plays: map[string]*plays{}}
}

func (s *score) add(o *outcome) {
	s.Injections++
	if o.disturbed {
		s.Disturbed++
	}
	s.Again += o.again
	if o.stalled {
		s.Stalled++
	}
	if s.Matrix[o.scenario.name] == nil {
		s.Matrix[o.scenario.name] = map[string]int{}
	}
	s.Matrix[o.scenario.name][o.named()]++
	if s.plays[o.scenario.name] == nil {
		s.plays[o.scenario.name] = &plays{}
	}
	s.plays[o.scenario.name].all++
	if o.isRight() {
		s.right++
		s.plays[o.scenario.name].right++
	}
	if o.isLie() {
		s.lies++
	}
	s.RightFirst = float64(s.right) / float64(s.Injections)
	s.ConfidentlyWrong = float64(s.lies) / float64(s.Injections)
	s.WorstSeconds = max(s.WorstSeconds, o.seconds())
}

// The bounds that a run must keep.
const (
	leastRightFirst = 0.95
	mostSeconds     = 5
)

// few is how many injections may have one miss, though it is more than a twentieth of
// them: of fewer than twenty it does not tell what the share is.
const few = 10

// mostMisses is how many may be named wrong at first.
func (s *score) mostMisses() int {
	most := int((1-leastRightFirst)*float64(s.Injections) + 1e-9)
	if s.Injections >= few {
		most = max(most, 1)
	}
	return most
}

// check says which bounds were not kept.
func (s *score) check() error {
	var broken []string
	if missed := s.Injections - s.right; missed > s.mostMisses() {
		broken = append(broken, fmt.Sprintf("%d of %d were not named right at first, %d may be", missed, s.Injections, s.mostMisses()))
	}
	for _, name := range slices.Sorted(maps.Keys(s.plays)) {
		if p := s.plays[name]; p.all > 1 && p.right == 0 {
			broken = append(broken, fmt.Sprintf("%s was never named right in %d plays", name, p.all))
		}
	}
	if s.lies > 0 {
		broken = append(broken, fmt.Sprintf("%d verdicts were certain or likely, and wrong", s.lies))
	}
	if s.WorstSeconds > mostSeconds {
		broken = append(broken, fmt.Sprintf("a verdict took %.1f s, it may take %d s", s.WorstSeconds, mostSeconds))
	}
	if len(broken) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(broken, "; "))
}

func (s *score) write(path string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// print prints the confusion matrix.
func (s *score) print(out io.Writer) {
	fmt.Fprintf(out, "\n%-28s named first\n", "injected")
	for _, injected := range slices.Sorted(maps.Keys(s.Matrix)) {
		named := s.Matrix[injected]
		causes := slices.SortedFunc(maps.Keys(named), func(a, b string) int {
			return cmp.Or(cmp.Compare(named[b], named[a]), cmp.Compare(a, b))
		})
		var cells []string
		for _, cause := range causes {
			cells = append(cells, fmt.Sprintf("%s %d", cause, named[cause]))
		}
		fmt.Fprintf(out, "%-28s %s\n", injected, strings.Join(cells, ", "))
	}
	fmt.Fprintf(out, "\nDONE %d injections in %d shuffles (seed %d): %.1f %% right first, %.1f %% confidently wrong, the slowest verdict after %.1f s; %d workloads lost their processor to others; %d plays were repeated because the emulated processor stood still, and it did in %d that count.\n",
		s.Injections, s.Runs, s.Seed, 100*s.RightFirst, 100*s.ConfidentlyWrong, s.WorstSeconds, s.Disturbed, s.Again, s.Stalled)
}
