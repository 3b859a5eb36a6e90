package fabric

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIncrease(t *testing.T) {
	for _, test := range []struct {
		name        string
		before, now uint64
		bits        int
		want        uint64
	}{
		{"none", 7, 7, 32, 0},
		{"some", 7, 9, 32, 2},
		{"wrapped", math.MaxUint32 - 1, 3, 32, 5},
		{"wrapped to zero", math.MaxUint32, 0, 32, 1},
		{"cleared", 1000, 4, 32, 4},
		{"half the range is cleared", 1 << 31, 0, 32, 0},
		{"cannot wrap", math.MaxUint32, 3, 0, 3},
		{"64 bits cleared", math.MaxUint64, 3, 64, 3},
		{"has more bits than thought", 1 << 33, 3, 32, 3},
	} {
		assert.Equal(t, test.want, increase(test.before, test.now, test.bits), test.name)
	}
}

func FuzzIncrease(f *testing.F) {
	f.Add(uint64(math.MaxUint32), uint64(0), 32)
	f.Add(uint64(5), uint64(3), 0)
	f.Fuzz(func(t *testing.T, before, now uint64, bits int) {
		grown := increase(before, now, bits)
		if now >= before {
			require.Equal(t, now-before, grown)
			return
		}
		require.True(t, grown == now || grown < 1<<(bits-1), "%d", grown)
	})
}
