package fabric

import (
	"fmt"
	"strconv"
	"strings"
)

// parseAER returns the sum over all kinds of errors, the last line of a file such
// as aer_dev_correctable.
func parseAER(text string) (uint64, error) {
	for line := range strings.Lines(text) {
		kind, number, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && strings.HasPrefix(kind, "TOTAL_ERR_") {
			return strconv.ParseUint(number, 10, 64)
		}
	}
	return 0, fmt.Errorf("%q has no line TOTAL_ERR_", shorten(text))
}
