//go:build !linux

package radar

import "time"

// processTime is not known.
func processTime() time.Duration { return 0 }
