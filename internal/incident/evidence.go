package incident

import (
	"slices"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
)

// take folds the verdict of another burst in. That of the worst burst wins, and
// one that knows a cause over one that does not; the evidence of the other is
// added where the winner is silent. It reports whether the cause or the confidence
// is another one now.
func (i *Incident) take(v *diagnose.Verdict, wins bool) (changed bool) {
	winner, loser := &i.Verdict, v
	if wins {
		winner, loser = v, &i.Verdict
	}
	merged := *winner
	silent := func(e diagnose.Evidence) bool { return !names(winner.For, e.Name) && !names(winner.Against, e.Name) }
	merged.For = union(winner.For, loser.For, silent)
	merged.Against = union(winner.Against, loser.Against, silent)
	if winner.Cause == loser.Cause {
		merged.Missing = unionOf(winner.Missing, loser.Missing)
		merged.Others = unionOf(winner.Others, loser.Others)
	}
	changed = merged.Cause != i.Verdict.Cause || merged.Confidence != i.Verdict.Confidence
	i.Verdict = merged
	return changed
}

func names(all []diagnose.Evidence, name string) bool {
	return slices.ContainsFunc(all, func(e diagnose.Evidence) bool { return e.Name == name })
}

// union are the first and those of the others that are taken, within bounds.
func union(first, others []diagnose.Evidence, taken func(diagnose.Evidence) bool) []diagnose.Evidence {
	all := slices.Clone(first[:min(len(first), maxTold)])
	for _, e := range others {
		if len(all) < maxTold && taken(e) && !names(all, e.Name) {
			all = append(all, e)
		}
	}
	return all
}

func unionOf(first, others []string) []string {
	all := slices.Clone(first[:min(len(first), maxTold)])
	for _, s := range others {
		if len(all) < maxTold && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
