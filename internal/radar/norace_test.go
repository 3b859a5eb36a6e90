//go:build !race

package radar

const slower = 1
