package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmaradar/rdmaradar/internal/lab/wire"
	"github.com/rdmaradar/rdmaradar/internal/launch"
)

// What the guest leaves is what the host scores.
func TestOutcomesOfTheGuest(t *testing.T) {
	path := filepath.Join(t.TempDir(), rxeResult)
	played := rxeScenarios()
	injected := time.Now().Round(0)
	outcomes := []*outcome{
		{scenario: &played[0].scenario, injected: injected, disturbed: true, stalled: true, again: 3},
		{scenario: &played[1].scenario, injected: injected, verdicts: []record{{
			device: "v_x", cause: "packet_loss", confidence: "likely", state: "open", body: "QP", came: injected.Add(time.Second),
		}}},
	}
	require.NoError(t, writeOutcomes(path, outcomes))
	read, err := readOutcomes(path)
	require.NoError(t, err)
	require.Len(t, read, 2)
	for i, o := range read {
		assert.Equal(t, outcomes[i].scenario.name, o.scenario.name)
		assert.Equal(t, outcomes[i].first(), o.first())
		assert.Equal(t, outcomes[i].isLie(), o.isLie())
		assert.InDelta(t, outcomes[i].seconds(), o.seconds(), 1e-9)
		assert.Equal(t, outcomes[i].disturbed, o.disturbed)
		assert.Equal(t, outcomes[i].stalled, o.stalled)
		assert.Equal(t, outcomes[i].again, o.again)
	}

	require.NoError(t, os.WriteFile(path, []byte(`[{"Scenario":"of another version"}]`), 0o644))
	_, err = readOutcomes(path)
	assert.ErrorContains(t, err, "no scenario")
}

// Verdicts are told apart by the names of the devices.
func TestScenariosHaveDevicesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range scenarios() {
		assert.False(t, seen[s.device()], s.name)
		seen[s.device()] = true
	}
	for _, s := range rxeScenarios() {
		for _, device := range []string{s.device(), s.peerDevice()} {
			assert.False(t, seen[device], s.name)
			seen[device] = true
		}
	}
}

func TestOfThePeerOnlyWhatIsWrongCounts(t *testing.T) {
	s := rxeScenario{peer: []string{"application_late"}}
	said := []record{{cause: "application_late"}, {cause: "hang"}}
	assert.Equal(t, said[1:], s.wronglySaid(said))
	assert.Len(t, said, 2)
}

func TestChoice(t *testing.T) {
	all, err := newChoice("")
	require.NoError(t, err)
	assert.Len(t, all.ofHost(), len(scenarios()))
	assert.Len(t, all.ofGuest(), len(rxeScenarios()))
	netem, err := newChoice("^netem")
	require.NoError(t, err)
	assert.Empty(t, netem.ofHost())
	assert.Len(t, netem.ofGuest(), 2)

	t.Setenv("VERDICT_PLACE", "here")
	played, err := choiceFrom("VERDICT_ONLY", "VERDICT_PLACE")
	require.NoError(t, err)
	assert.NotEmpty(t, played.ofHost())
	assert.Empty(t, played.ofGuest())
	t.Setenv("VERDICT_PLACE", "there")
	_, err = choiceFrom("VERDICT_ONLY", "VERDICT_PLACE")
	assert.ErrorContains(t, err, "VERDICT_PLACE")

	t.Setenv("VERDICT_ONLY", "(")
	_, err = choiceFrom("VERDICT_ONLY", "VERDICT_PLACE")
	assert.ErrorContains(t, err, "VERDICT_ONLY")
}

func TestStallsAreFresh(t *testing.T) {
	s := stalls{lines: launch.Follower{Path: filepath.Join(t.TempDir(), stallLog)}}
	defer s.lines.Close()
	for _, text := range []string{"", "watches\n", "watches\nstood still for 50 ms\n"} {
		require.NoError(t, os.WriteFile(s.lines.Path, []byte(text), 0o644))
		fresh, err := s.fresh()
		require.NoError(t, err)
		assert.Equal(t, text != "", fresh > 0)
		again, err := s.fresh()
		require.NoError(t, err)
		assert.Zero(t, again)
	}
}

// Stalls from before a scenario are none of it.
func TestSettling(t *testing.T) {
	s := stalls{lines: launch.Follower{Path: filepath.Join(t.TempDir(), stallLog)}}
	defer s.lines.Close()
	begun := time.Now()
	require.NoError(t, s.settle(t.Context(), begun.Add(2*pollInterval)))
	assert.GreaterOrEqual(t, time.Since(begun), 2*pollInterval)

	require.NoError(t, os.WriteFile(s.lines.Path, []byte("stood still for 500 ms\n"), 0o644))
	begun = time.Now()
	require.NoError(t, s.settle(t.Context(), begun))
	assert.GreaterOrEqual(t, time.Since(begun), calm-pollInterval)
	fresh, err := s.fresh()
	require.NoError(t, err)
	assert.Zero(t, fresh)
}

// What is laid for the next scenario is not on the wire of the present one.
func TestWiresTakeTurns(t *testing.T) {
	near, far := &rxeScenario{}, &rxeScenario{far: true}
	first, second := &laid{wire: wire.Veth()}, &laid{wire: wire.SecondVeth()}
	for name, test := range map[string]struct {
		stage  rxeStage
		played *rxeScenario
		want   wire.Wire
	}{
		"nothing there":     {played: near, want: wire.Veth()},
		"the far node":      {stage: rxeStage{present: first}, played: far, want: wire.NICs()},
		"one is played on":  {stage: rxeStage{present: first}, played: near, want: wire.SecondVeth()},
		"the other is":      {stage: rxeStage{present: second}, played: near, want: wire.Veth()},
		"one is laid":       {stage: rxeStage{next: first}, played: near, want: wire.SecondVeth()},
		"the other is laid": {stage: rxeStage{next: second}, played: near, want: wire.Veth()},
	} {
		assert.Equal(t, test.want, test.stage.freeWire(test.played), name)
	}
}
