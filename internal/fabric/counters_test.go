package fabric

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCountersAreDescribed(t *testing.T) {
	units := map[string]string{}
	seen := map[string]bool{}
	for _, c := range Counters() {
		name := fmt.Sprint(c.Source, " ", c.Name)
		assert.False(t, seen[name], "%s is there twice", name)
		seen[name] = true
		assert.NotEmpty(t, c.Meaning, name)
		assert.True(t, strings.HasSuffix(c.Meaning, "."), name)
		assert.True(t, strings.HasPrefix(c.Metric, "rdma.port.") || strings.HasPrefix(c.Metric, "rdma.device."), name)
		if unit, ok := units[c.Metric]; ok {
			assert.Equal(t, unit, c.Unit, name)
		}
		units[c.Metric] = c.Unit
	}
}

func TestFindCounter(t *testing.T) {
	known := newCatalogue()
	for _, test := range []struct {
		source CounterSource
		name   string
		want   string
	}{
		{SourcePort, "symbol_error", "symbol_error"},
		{SourceHardware, "symbol_error", ""},
		{SourcePort, "VL15_dropped", "VL15_dropped"},
		{SourceEthtool, "rx_prio0_pause", "rx_prio[p]_pause"},
		{SourceEthtool, "rx_prio7_pause", "rx_prio[p]_pause"},
		{SourceEthtool, "rx_prio8_pause", ""},
		{SourceEthtool, "rx_prio[p]_pause", ""},
		{SourceEthtool, "rx_err_lane_3_phy", "rx_err_lane_[l]_phy"},
		{SourceEthtool, "rx_err_lane_13_phy", ""},
		{SourceEthtool, "", ""},
	} {
		found, ok := known.find(test.source, test.name)
		require.Equal(t, test.want != "", ok, test.name)
		if ok {
			assert.Equal(t, test.want, found.Name, test.name)
			assert.Equal(t, test.name, found.name)
		}
	}
}

func FuzzFindCounter(f *testing.F) {
	known := newCatalogue()
	f.Add("rx_prio3_pause")
	f.Add("٣")
	f.Fuzz(func(t *testing.T, name string) {
		for source := range known {
			found, ok := known.find(source, name)
			if ok && found.priority != nil {
				require.True(t, *found.priority >= 0 && *found.priority < 8)
			}
		}
	})
}

func TestParseAER(t *testing.T) {
	got, err := parseAER("RxErr 1\nBadTLP 2\nTOTAL_ERR_COR 3")
	require.NoError(t, err)
	assert.EqualValues(t, 3, got)
	for _, text := range []string{"", "RxErr 1", "TOTAL_ERR_COR", "TOTAL_ERR_COR -1", "TOTAL_ERR_COR x"} {
		_, err := parseAER(text)
		assert.Error(t, err, text)
	}
}

const (
	counterDocument = "../../docs/counters.md"
	tableBegin      = "<!-- counters -->\n"
	tableEnd        = "<!-- /counters -->"
)

// The table of the document is that of the program. With UPDATE_GOLDEN set it is
// written, and the test fails so that this cannot go unnoticed.
func TestCountersAreDocumented(t *testing.T) {
	text, err := os.ReadFile(counterDocument)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), tableBegin)
	require.True(t, ok)
	table, after, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok)
	var want strings.Builder
	want.WriteString("| source | counter | metric | meaning |\n| --- | --- | --- | --- |\n")
	for _, c := range Counters() {
		fmt.Fprintf(&want, "| `%s` | `%s` | `%s` | %s |\n", c.Source, c.Name, c.Metric, c.Meaning)
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(counterDocument, []byte(before+tableBegin+want.String()+tableEnd+after), 0o644))
		t.Error("the table was written")
	}
	assert.Equal(t, want.String(), table, "run the test with UPDATE_GOLDEN=1")
}
