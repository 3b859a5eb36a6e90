package text

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", -5: "-5 ns", 999: "999 ns", 1000: "1 µs", 1900: "1.9 µs", 9949: "9.9 µs", 9960: "10 µs", 1_234_567: "1.2 ms",
		380 * time.Microsecond: "380 µs", 67_108_864: "67 ms", 1250 * time.Millisecond: "1.2 s", 4 * time.Second: "4 s",
		90 * time.Second: "90 s", math.MaxInt64: "9223372037 s",
	} {
		assert.Equal(t, want, Duration(d))
	}
}
