package radar

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the CPU time of this process so far.
func processTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
