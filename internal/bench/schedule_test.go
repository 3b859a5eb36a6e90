package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScheduleFrom(t *testing.T) {
	for _, text := range []string{"soon", "59", "541", "-1", "60.5", " 60"} {
		_, err := scheduleFrom(text)
		assert.ErrorContains(t, err, "BENCH_SECONDS", text)
	}
	s, err := scheduleFrom("")
	require.NoError(t, err)
	assert.Equal(t, agentRepeats, s.agent.repeats, "the default leaves room for every repeat")
	assert.Equal(t, collectionInterval, s.agent.window)
	assert.Equal(t, pageRepeats, s.page.repeats, "the default leaves room for every repeat")
	assert.Equal(t, collectionInterval, s.page.window)
}

// TestDivide: whatever the time, all parts fit into it, and the agent is
// watched at every load and with every state of the page.
func TestDivide(t *testing.T) {
	for total := minSeconds; total <= maxSeconds; total++ {
		whole := time.Duration(total) * time.Second
		s := divide(whole)
		assert.LessOrEqual(t, s.agent.time()+s.page.time()+s.probes, whole, total)
		for _, w := range []watching{s.agent, s.page} {
			assert.GreaterOrEqual(t, w.repeats, 1, total)
			assert.GreaterOrEqual(t, w.window, 2*time.Second, total)
			assert.LessOrEqual(t, w.window, collectionInterval, total)
		}
	}
}
