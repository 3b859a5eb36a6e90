package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuantiles(t *testing.T) {
	for _, test := range []struct {
		values         []float64
		median, spread float64
	}{
		{nil, 0, 0},
		{[]float64{7}, 7, 0},
		{[]float64{1, 2}, 1.5, 1. / 3},
		{[]float64{9, 1, 5}, 5, 0.8},
		{[]float64{4, 1, 3, 2, 1000}, 3, 2. / 3},
	} {
		assert.InDelta(t, test.median, median(test.values), 1e-9, test.values)
		assert.InDelta(t, test.spread, spread(test.values), 1e-9, test.values)
	}
}

func TestMedianKeepsTheOrder(t *testing.T) {
	values := []float64{3, 1, 2}
	median(values)
	assert.Equal(t, []float64{3, 1, 2}, values)
}

// TestFill: medians come under the name of their mode, and the untraced mode
// attaches nothing.
func TestFill(t *testing.T) {
	untraced, ours := newMode(modeUntraced, nobody{}), newMode(modeOurs, nobody{})
	for _, ns := range []float64{30, 10, 20} {
		untraced.add(loopResult{PollNs: map[string]float64{"0": ns, "1000": ns / 10}, PostNs: ns})
		ours.add(loopResult{PollNs: map[string]float64{"0": 100 * ns, "1000": 10 * ns}, PostNs: 50 * ns})
		ours.attach = append(ours.attach, ns)
		ours.detach = append(ours.detach, 2*ns)
	}
	var r result
	fill(&r, []*mode{untraced, ours})
	assert.Equal(t, map[string]float64{"0": 20, "1000": 2}, r.PollNs[modeUntraced])
	assert.Equal(t, map[string]float64{"0": 2000, "1000": 200}, r.PollNs[modeOurs])
	assert.Equal(t, map[string]float64{modeUntraced: 20, modeOurs: 1000}, r.PostNs)
	assert.Equal(t, map[string]float64{modeOurs: 20}, r.AttachMs)
	assert.Equal(t, map[string]float64{modeOurs: 40}, r.DetachMs)
}

// TestNames: the names that readers of out/bench.json go by.
func TestNames(t *testing.T) {
	r := result{
		PollNs:   map[string]map[string]float64{modeOurs: {"1000": 8}},
		PostNs:   map[string]float64{modeOurs: 900},
		Programs: []programResult{{Name: "enter_poll_cq", RunCount: 2, NsPerRun: 50}},
		Agent:    []agentResult{{AskedPerSecond: 10000, CompletionsPerSecond: 9999, SlowShare: 0.1, CPUCores: 0.01, RSSBytes: 1, MapBytes: 2}},
		QPs:      []queueResult{{QPs: 16, MapBytes: 3}},
	}
	text, err := json.Marshal(&r)
	require.NoError(t, err)
	var read struct {
		Poll  map[string]map[string]float64 `json:"poll_ns"`
		Post  map[string]float64            `json:"post_ns"`
		Agent []map[string]float64          `json:"agent"`
		QPs   []map[string]float64          `json:"qps"`
		Runs  []struct {
			Count uint64  `json:"run_cnt"`
			Ns    float64 `json:"ns_per_run"`
		} `json:"programs"`
	}
	require.NoError(t, json.Unmarshal(text, &read))
	assert.EqualValues(t, 8, read.Poll["ours"]["1000"])
	assert.EqualValues(t, 900, read.Post["ours"])
	for key, want := range map[string]float64{"completions_per_s": 9999, "slow_share": 0.1, "cpu_cores": 0.01, "rss_bytes": 1, "map_bytes": 2} {
		assert.Equal(t, want, read.Agent[0][key], key)
	}
	assert.EqualValues(t, 16, read.QPs[0]["qps"])
	assert.EqualValues(t, 3, read.QPs[0]["map_bytes"])
	assert.EqualValues(t, 2, read.Runs[0].Count)
	assert.EqualValues(t, 50, read.Runs[0].Ns)
}

func TestSortPrograms(t *testing.T) {
	sorted := sortPrograms([]programResult{{"rare", 1, 5000}, {"often", 1000, 50}, {"b", 10, 1}, {"a", 10, 1}})
	var names []string
	for _, p := range sorted {
		names = append(names, p.Name)
	}
	assert.Equal(t, []string{"often", "rare", "a", "b"}, names)
}

func TestGrowth(t *testing.T) {
	line := []queueResult{{QPs: 16, MapBytes: 1016}, {QPs: 256, MapBytes: 1256}, {QPs: 1024, MapBytes: 2024}}
	assert.InDelta(t, 1, growth(line), 1e-6)
	assert.Zero(t, growth(line[:1]), "one point is no line")
	assert.Zero(t, growth(nil))
}

func TestMiddle(t *testing.T) {
	got := middle([]agentResult{
		{AskedPerSecond: 10, SlowShare: 0.1, CPUCores: 0.3, RSSBytes: 10, MapBytes: 7, CompletionsPerSecond: 9},
		{AskedPerSecond: 10, SlowShare: 0.1, CPUCores: 0.1, RSSBytes: 30, MapBytes: 7, CompletionsPerSecond: 11},
		{AskedPerSecond: 10, SlowShare: 0.1, CPUCores: 0.2, RSSBytes: 20, MapBytes: 7, CompletionsPerSecond: 10},
	})
	assert.Equal(t, agentResult{AskedPerSecond: 10, SlowShare: 0.1, CPUCores: 0.2, RSSBytes: 20, MapBytes: 7, CompletionsPerSecond: 10}, got)
}
