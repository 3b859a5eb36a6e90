package text

import (
	"strconv"
	"strings"
	"time"
)

// Duration is a duration as people say it, of two digits or more: "1.9 µs",
// "380 µs", "4 s".
func Duration(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}}
	for _, unit := range units {
		if d < unit.size {
			continue
		}
		value := float64(d) / float64(unit.size)
		if value < 9.95 {
			return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0") + " " + unit.name
		}
		return strconv.FormatFloat(value, 'f', 0, 64) + " " + unit.name
	}
	return strconv.FormatInt(int64(d), 10) + " ns"
}
