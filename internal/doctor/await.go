package doctor

import "context"

// Await takes a value until the context ends, and then one that is there. A select between
// both picks at random, and who gets a processor late finds both.
func Await[T any](ctx context.Context, values <-chan T) (value T, ok bool) {
	select {
	case value = <-values:
		return value, true
	case <-ctx.Done():
	}
	select {
	case value = <-values:
		return value, true
	default:
		return value, false
	}
}
