package diagnose

import (
	"slices"
	"testing"
)

func says(name string, confidence Confidence, explains float64, consequences ...string) Cause {
	return Cause{Name: name, Remedy: "mend " + name, Consequences: consequences, judge: func(*Burst) Judgement {
		return Judgement{Confidence: confidence, Explains: explains, Missing: []string{"more of " + name}}
	}}
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		causes     []Cause
		want       string
		confidence Confidence
		others     []string
	}{
		"nothing speaks for any": {causes: []Cause{says("a", None, 0)}, want: Unknown},
		"the most confident wins": {
			causes: []Cause{says("a", Possible, 1), says("b", Likely, 0.1)}, want: "b", confidence: Likely, others: []string{"a"},
		},
		"the one that explains more wins": {
			causes: []Cause{says("a", Likely, 0.2), says("b", Likely, 0.9)}, want: "b", confidence: Likely, others: []string{"a"},
		},
		"two that are as good are in doubt": {
			causes: []Cause{says("a", Certain, 0.8), says("b", Certain, 0.9)}, want: "b", confidence: Possible, others: []string{"a"},
		},
		"a consequence is no doubt": {
			causes: []Cause{says("a", Likely, 0.9, "b"), says("b", Likely, 0.9)}, want: "a", confidence: Likely,
		},
		"a cause stands before its consequence that accounts for more": {
			causes: []Cause{says("a", Likely, 0.9), says("b", Likely, 0.8, "a")}, want: "b", confidence: Likely,
		},
		"not if it accounts for much less": {
			causes: []Cause{says("a", Likely, 0.9), says("b", Likely, 0.5, "a")}, want: "a", confidence: Likely, others: []string{"b"},
		},
		"two that bring each other about stand in their order": {
			causes: []Cause{says("a", Likely, 0.9, "b"), says("b", Likely, 0.9, "a")}, want: "a", confidence: Likely,
		},
		"a circle of causes has a first": {
			causes: []Cause{says("a", Likely, 0.9, "b"), says("b", Likely, 0.9, "c"), says("c", Likely, 0.9, "a")}, want: "a", confidence: Possible, others: []string{"c"},
		},
		"of equal ones the first wins": {
			causes: []Cause{says("a", Possible, 0), says("b", Possible, 0)}, want: "a", confidence: Possible, others: []string{"b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(&Burst{}, test.causes)
			if got.Cause != test.want || got.Confidence != test.confidence || !slices.Equal(got.Others, test.others) {
				t.Errorf("got %+v, want %s, %q, others %q", got, test.want, test.confidence, test.others)
			}
		})
	}
}

func TestUnknownAlwaysSaysWhatWouldTell(t *testing.T) {
	silent := Cause{Name: "a", judge: func(*Burst) Judgement { return Judgement{} }}
	if got := Judge(&Burst{}, []Cause{silent}); len(got.Missing) != 1 {
		t.Errorf("got %q", got.Missing)
	}
}

func TestUnknownSaysWhatWouldTell(t *testing.T) {
	got := Judge(&Burst{}, []Cause{says("a", None, 0), says("b", None, 0), says("a", None, 0)})
	if want := []string{"more of a", "more of b"}; !slices.Equal(got.Missing, want) {
		t.Errorf("got %q, want %q", got.Missing, want)
	}
}
