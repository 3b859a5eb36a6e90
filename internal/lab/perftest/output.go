package perftest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// iterationLine is a line of the report that -U and -C ask for: number, cycles.
var iterationLine = regexp.MustCompile(`^(\d+), ([0-9.e+-]+)$`)

// inCycles heads that report.
const inCycles = "#, cycles"

// Iterations reads the per-iteration report of a latency test (-U -C), on a machine
// whose clock makes so many cycles in a microsecond. Perftest prints the time between
// the posts of neighbouring iterations, so there is one value less than iterations,
// halved for ping-pongs and whole for reads.
func Iterations(output string, perMicrosecond float64) ([]time.Duration, error) {
	if !strings.Contains(output, inCycles) {
		return nil, fmt.Errorf("no per-iteration report in cycles in the output of %d bytes: were -U and -C given?", len(output))
	}
	if perMicrosecond < 1 {
		return nil, fmt.Errorf("a clock with %v cycles in a microsecond", perMicrosecond)
	}
	var found []time.Duration
	for line := range strings.Lines(output) {
		m := iterationLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		cycles, err := strconv.ParseFloat(m[2], 64)
		if err != nil || cycles < 0 || cycles/perMicrosecond > float64(time.Hour/time.Microsecond) {
			return nil, fmt.Errorf("perftest reports an iteration of %q cycles", m[2])
		}
		if m[1] != strconv.Itoa(len(found)+1) {
			return nil, fmt.Errorf("perftest's report is torn: iteration %s follows %d", m[1], len(found))
		}
		found = append(found, time.Duration(cycles/perMicrosecond*float64(time.Microsecond)))
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no per-iteration report in the output of %d bytes", len(output))
	}
	return found, nil
}

// bandwidthLine is the result of a bandwidth test: bytes, iterations, peak and
// average in units of 2^20 bytes a second, million messages a second.
var bandwidthLine = regexp.MustCompile(`^(\d+)\s+(\d+)\s+[0-9.]+\s+([0-9.]+)\s+[0-9.]+$`)

// Bandwidth reads the average of a bandwidth test, in bytes a second.
func Bandwidth(output string) (float64, error) {
	if !strings.Contains(output, "BW average[MB/sec]") {
		return 0, fmt.Errorf("no result in MB/sec in the output of %d bytes", len(output))
	}
	for line := range strings.Lines(output) {
		m := bandwidthLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		average, err := strconv.ParseFloat(m[3], 64)
		if err != nil || average <= 0 {
			return 0, fmt.Errorf("perftest reports an average of %q MB/sec", m[3])
		}
		return average * (1 << 20), nil
	}
	return 0, fmt.Errorf("no line with a result in the output of %d bytes", len(output))
}

// Uncalibrated reports whether the run could not tell the speed of the clock
// that it measures with, as happens on a busy host. It then did its work, and
// its figures are 0 or infinite.
func Uncalibrated(output string) bool {
	return strings.Contains(output, "Correlation coefficient r^2:")
}

// UsesClassicInterface reports whether the run used post_send rather than the
// builders of the extended interface (ibv_wr_*).
func UsesClassicInterface(output string) bool {
	return regexp.MustCompile(`ibv_wr\* API\s*: OFF`).MatchString(output)
}

// Quantile returns the smallest value that at least the fraction q of the
// values do not exceed.
func Quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[max(0, min(rank, len(sorted)-1))]
}
