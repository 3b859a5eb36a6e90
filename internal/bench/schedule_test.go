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
	assert.Equal(t, agentRepeats, s.repeats, "the default leaves room for every repeat")
	assert.Equal(t, collectionInterval, s.window)
}

// TestDivide: whatever the time, both parts fit into it and the agent is
// watched at every load.
func TestDivide(t *testing.T) {
	for total := minSeconds; total <= maxSeconds; total++ {
		whole := time.Duration(total) * time.Second
		s := divide(whole)
		assert.LessOrEqual(t, s.agentTime()+s.probes, whole, total)
		assert.GreaterOrEqual(t, s.repeats, 1, total)
		assert.Greater(t, s.window, 2*time.Second, total)
		assert.LessOrEqual(t, s.window, collectionInterval, total)
	}
}
