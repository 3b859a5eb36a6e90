package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func measured() *result {
	return &result{
		Machine: machine{Kernel: "6.1", Processor: "CPU", CPUs: 2, Virtual: true, LoadAtStart: 0.5},
		Rounds:  5,
		PollNs: map[string]map[string]float64{
			modeUntraced:    {"0": 10, "10": 8, "100": 7, "1000": 7},
			modeBare:        {"0": 700, "10": 70, "100": 14, "1000": 8},
			modeOurs:        {"0": 1050, "10": 105, "100": 18, "1000": 8.4},
			modeEntryReturn: {"0": 1900, "10": 1700, "100": 1500, "1000": 1407},
		},
		PostNs:   map[string]float64{modeUntraced: 15, modeBare: 700, modeOurs: 980},
		AttachMs: map[string]float64{modeOurs: 120},
		QPs:      []queueResult{{QPs: 16, MapBytes: 32 << 20, Tracked: 16}, {QPs: 32, MapBytes: 32 << 20, Tracked: 30, Untracked: 2}},
		Agent:    []agentResult{{AskedPerSecond: 0, CompletionsPerSecond: 250000.4, SlowShare: 0.001, CPUCores: 0.0123, RSSBytes: 70 << 20}},
		Page:     []pageResult{{State: pageAbsent, QPs: 4096, CPUCores: 0.0125}, {State: pageWatched, QPs: 4096, CPUCores: 0.05}},
		Programs: []programResult{{Name: "enter_poll_cq", RunCount: 12, NsPerRun: 151.25}},
		Profile:  []profilePart{{partReads, 0.125}},
		Notes:    []string{"bpftrace is missing: no such file"},
	}
}

// TestRatios: only what was measured is compared.
func TestRatios(t *testing.T) {
	byText := map[string]float64{}
	for _, one := range ratios(measured()) {
		byText[one.text] = one.value
	}
	assert.Len(t, byText, 4)
	assert.InDelta(t, 1.2, byText["a poll at 1000:1, ours / untraced"], 1e-9)
	assert.InDelta(t, 1000, byText["added to a poll at 1000:1, entry_return / ours"], 1e-6)
	assert.InDelta(t, 1.5, byText["a completion (0:1), ours / bare"], 1e-9)
	assert.InDelta(t, 1.4, byText["a post, ours / bare"], 1e-9)
}

func TestPrintTable(t *testing.T) {
	var out strings.Builder
	printTable(&out, measured())
	text := out.String()
	for _, want := range []string{
		"2 processors (virtual machine), Linux 6.1; load average 0.50 before",
		"medians of 5 rounds",
		"NOTE: bpftrace is missing: no such file",
		"250000", "0.0123", "151.2", "12.5 %", "4096 queue pairs in use", "+0.0375",
	} {
		assert.Contains(t, text, want)
	}
	assert.Equal(t, []string{"ours", "1050.0", "105.0", "18.0", "8.4", "980.0", "120", "-"}, row(text, "ours"))
	assert.Equal(t, []string{"bpftrace", "-", "-", "-", "-", "-", "-", "-"}, row(text, "bpftrace"))
	assert.Equal(t, []string{"32", "30", "2", "32.00"}, row(text, "32"))
}

// row returns the fields of the first line that begins with a word.
func row(text, word string) []string {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == word {
			return fields
		}
	}
	return nil
}
