package incident

import (
	"slices"

	"github.com/rdmaradar/rdmaradar/internal/diagnose"
)

// take folds the verdict of another burst in. An incident has the verdict of one
// burst, whole: what speaks for a cause in one burst may not hold in another, and
// their figures are not of the same moment. It reports whether the cause or the
// confidence is another one now, but for the first verdict.
func (e *entry) take(r *Report) (changed bool) {
	if !e.tellsMore(r) {
		return false
	}
	before := e.Verdict
	e.Verdict, e.Port, e.Clearest, e.weight = bounded(r.Verdict), r.Port, r.Worst, r.weight()
	return before.Cause != "" && (before.Cause != r.Verdict.Cause || before.Confidence != r.Verdict.Confidence)
}

// tellsMore reports whether a burst tells more of the incident than the one whose
// verdict it has: it is surer, or as sure and lost more time. Where the causes differ
// the incident had none.
func (e *entry) tellsMore(r *Report) bool {
	switch {
	case e.Verdict.Cause != r.Verdict.Cause:
		return true
	case e.Verdict.Confidence != r.Verdict.Confidence:
		return r.Verdict.Confidence > e.Verdict.Confidence
	default:
		return r.weight() > e.weight
	}
}

// bounded is a verdict with as much as is told of it.
func bounded(v diagnose.Verdict) diagnose.Verdict {
	v.For, v.Against = firstOf(v.For), firstOf(v.Against)
	v.Missing, v.Others = firstOf(v.Missing), firstOf(v.Others)
	return v
}

func firstOf[T any](all []T) []T { return slices.Clone(all[:min(len(all), maxTold)]) }
