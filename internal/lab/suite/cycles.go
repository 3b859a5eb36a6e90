package suite

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/lab/perftest"
)

// iterations reads a client's report of its iterations. Their cycles become time by
// the speed that the kernel measured at length, which its own clocks, and so ours,
// follow.
func iterations(output string) ([]time.Duration, error) {
	const path = "/proc/cpuinfo"
	info, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("speed of the cycle counter: %w", err)
	}
	perMicrosecond, err := cyclesPerMicrosecond(string(info))
	if err != nil {
		return nil, fmt.Errorf("speed of the cycle counter in %s: %w", path, err)
	}
	return perftest.Iterations(output, perMicrosecond)
}

// cyclesPerMicrosecond reads the first "cpu MHz" of /proc/cpuinfo.
func cyclesPerMicrosecond(info string) (float64, error) {
	for line := range strings.Lines(info) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "cpu MHz" {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("no line of \"cpu MHz\" in %d bytes", len(info))
}
