package rdmareceiver

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal keeps for Validate what is wrong with numbers as they were written, before
// they become whole: of 1.5 nothing is left but 1, of what is no number or too large
// something arbitrary, and of a duration without a unit nanoseconds.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	c.misread = map[string]error{
		"max_exported_per_second": isWholeNumber(conf, "max_exported_per_second", 1, maxExportedLimit),
		"max_series":              isWholeNumber(conf, "max_series", minSeries, maxSeriesLimit),
		"max_map_mib":             isWholeNumber(conf, "max_map_mib", minMapMiB, maxMapMiB),
		"threshold":               hasUnit(conf, "threshold", "us", minThreshold, maxThreshold),
		"collection_interval":     hasUnit(conf, "collection_interval", "s", minCollectionInterval, maxCollectionInterval),
	}
	return conf.Unmarshal(c)
}

// isWholeNumber leaves alone what can be judged once it is an int.
func isWholeNumber(conf *confmap.Conf, key string, low, high int) error {
	written := conf.Get(key)
	if number, ok := numberOf(written); !ok || isWhole(number) {
		return nil
	}
	return fmt.Errorf("%s is %v: set it to a whole number from %d to %d", key, written, low, high)
}

// hasUnit takes a number for a duration without its unit where it is too small to be
// nanoseconds on purpose; unit is the one that the key is usually given in.
func hasUnit(conf *confmap.Conf, key, unit string, low, high time.Duration) error {
	written := conf.Get(key)
	number, ok := numberOf(written)
	switch {
	case !ok, number == 0, isWhole(number) && number >= float64(time.Microsecond):
		return nil
	case number > 0 && number < float64(time.Microsecond):
		return fmt.Errorf("%s is %v: set it to a value from %v to %v; a number without a unit is nanoseconds: write %v%s",
			key, written, low, high, written, unit)
	default:
		return fmt.Errorf("%s is %v: set it to a value from %v to %v, with its unit", key, written, low, high)
	}
}

// numberOf is a number as YAML has it; ok is false of anything else.
func numberOf(written any) (number float64, ok bool) {
	switch n := written.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	default:
		return 0, false
	}
}

// isWhole reports whether a number is an int that a float64 can tell from its
// neighbours. Not a number is none.
func isWhole(number float64) bool {
	const exact = 1 << 53
	return number == math.Trunc(number) && math.Abs(number) <= exact
}
