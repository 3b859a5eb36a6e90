package incident

import "slices"

// The bounds of what is told of one incident.
const (
	// maxListed is how many queue pairs, processes and ranks are named.
	maxListed = 16
	// maxTold is how many pieces of evidence of a kind are named.
	maxTold = 8
	// maxSpans is how many of the worst spans are named.
	maxSpans = 8
	// maxDistinct is how many are told apart to count those that are not named.
	maxDistinct = 1024
)

// List is a bounded list of different values: the first ones, and how many more
// there were.
type List[T comparable] struct {
	Values []T
	// More counts those that are not in Values; at most about a thousand are told
	// apart.
	More int
	seen map[T]bool
}

// add is true of a value that was not there before.
func (l *List[T]) add(value T) (added bool) {
	if l.seen[value] || len(l.seen) >= maxDistinct {
		return false
	}
	if l.seen == nil {
		l.seen = map[T]bool{}
	}
	l.seen[value] = true
	if len(l.Values) < maxListed {
		l.Values = append(l.Values, value)
		return true
	}
	l.More++
	return true
}

// copied shares nothing that changes.
func (l *List[T]) copied() List[T] { return List[T]{Values: slices.Clone(l.Values), More: l.More} }
