package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseStolen(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want map[uint32]time.Duration
		says string
	}{
		"two CPUs": {
			"cpu  1 2 3 4 5 6 7 50 9 10\ncpu0 1 2 3 4 5 6 7 20 9 10\ncpu12 1 2 3 4 5 6 7 30 9 10\nintr 1 2\ncpu3 x\n",
			map[uint32]time.Duration{0: 200 * time.Millisecond, 12: 300 * time.Millisecond},
			"",
		},
		"nothing":      {"", map[uint32]time.Duration{}, ""},
		"too short":    {"cpu0 1 2 3\n", nil, "no steal"},
		"no number":    {"cpu0 1 2 3 4 5 6 7 x 9 10\n", nil, "not of numbers"},
		"no CPU":       {"cpux 1 2 3 4 5 6 7 8 9 10\n", nil, "not of numbers"},
		"beyond years": {"cpu0 1 2 3 4 5 6 7 18446744073709551615 9 10\n", nil, "not of numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStolen([]byte(test.text))
			assert.Equal(t, test.want, got)
			if test.says == "" {
				require.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.says)
			}
		})
	}
}

func TestStolenOfThisMachine(t *testing.T) {
	stolen, err := NewReader("/proc").Stolen()
	require.NoError(t, err)
	assert.NotEmpty(t, stolen)
	_, err = NewReader(t.TempDir()).Stolen()
	assert.ErrorContains(t, err, "stolen time")
}

func FuzzParseStolen(f *testing.F) {
	f.Add([]byte("cpu0 1 2 3 4 5 6 7 20 9 10\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		stolen, _ := parseStolen(text)
		for _, d := range stolen {
			require.GreaterOrEqual(t, d, time.Duration(0))
		}
	})
}
