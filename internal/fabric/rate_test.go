package fabric

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseRate(t *testing.T) {
	for _, test := range []struct {
		text string
		want linkRate
	}{
		{"400 Gb/sec (4X NDR)", linkRate{400e9, "NDR", 4}},
		{"2.5 Gb/sec (1X SDR)", linkRate{2.5e9, "SDR", 1}},
		{"112 Gb/sec (8X FDR)", linkRate{112e9, "FDR", 8}},
		{"40 Gb/sec (4X FDR10)", linkRate{40e9, "FDR10", 4}},
		{"10 Gb/sec (4X)", linkRate{10e9, "", 4}},
	} {
		got, err := parseRate(test.text)
		require.NoError(t, err, test.text)
		assert.Equal(t, test.want, got, test.text)
	}
	for _, text := range []string{
		"", "400", "Gb/sec", "-1 Gb/sec (4X NDR)", "inf Gb/sec (4X NDR)", "1e9 Gb/sec (4X NDR)",
		"0x10 Gb/sec (4X NDR)", "400 Mb/sec (4X NDR)", "400 Gb/sec", "400 Gb/sec (4X NDR) ", "9999999 Gb/sec (4X NDR)",
	} {
		_, err := parseRate(text)
		assert.ErrorContains(t, err, "rate", text)
	}
}

func FuzzParseRate(f *testing.F) {
	for _, seed := range []string{"400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)", "10 Gb/sec (4X)", "NaN Gb/sec (1X)", "1e400 Gb/sec (1X)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rate, err := parseRate(text)
		if err != nil {
			require.Less(t, len(err.Error()), 512)
			return
		}
		for _, layer := range []string{LinkLayerInfiniBand, LinkLayerEthernet, ""} {
			data := rate.dataRate(layer)
			require.False(t, math.IsNaN(data) || math.IsInf(data, 0) || data < 0 || data > rate.bitsPerSecond, "%q: %v", text, data)
		}
	})
}

func FuzzParseState(f *testing.F) {
	for _, seed := range []string{"4: ACTIVE", "1: DOWN", "5: ACTIVE_DEFER", ":", "4:", "x: ACTIVE"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		require.LessOrEqual(t, len(parseState(text)), len(text))
	})
}

func TestParseState(t *testing.T) {
	for text, want := range map[string]string{
		"4: ACTIVE": "ACTIVE", "1: DOWN": "DOWN", "2: INIT": "INIT", "0: NOP": "NOP",
		"": "", "ACTIVE": "", "x: ACTIVE": "", "4:": "",
	} {
		assert.Equal(t, want, parseState(text), text)
	}
}
