//go:build race

package radar

// slower is how much more time the race detector is granted.
const slower = 8
